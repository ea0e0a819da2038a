// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/payloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "importers/files/crc32.h"
#include "importers/pt2/tensor_meta.h"
#include "support/error.h"
#include "support/parallel.h"

namespace ingot::core::pt2 {
namespace {

constexpr size_t kAlignment = 16;  // of the largest element

[[noreturn]] void refuse_shape(const std::string& name, std::string_view what) {
  throw UserError("INGOT-U507", fmt::format("the values of '{}' are damaged: {}", name, what));
}

int64_t concrete(const Dim& dim, const std::string& name) {
  const std::optional<int64_t> value = dim.constant();
  if (!value || *value < 0) refuse_shape(name, "a size, stride or offset is not a non-negative integer");
  return *value;
}

// One past the last element of the view, relative to the storage's beginning; 0 for an empty view.
int64_t end_of(const TensorView& view, int64_t offset, const std::string& name) {
  int64_t last = offset;
  for (size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 0) return 0;
    int64_t reach = 0;
    if (__builtin_mul_overflow(view.shape[i] - 1, view.strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last))
      refuse_shape(name, "its sizes overflow");
  }
  if (__builtin_add_overflow(last, 1, &last)) refuse_shape(name, "its sizes overflow");
  return last;
}

}  // namespace

Payloads::Payloads(std::optional<Json> config, std::string folder, const ZipMembers& members,
                   std::shared_ptr<const void> owner)
    : folder_(std::move(folder)), members_(members), owner_(std::move(owner)) {
  if (!config) return;
  for (const auto [name, meta] : config->at("config").members()) config_.emplace(name, meta);
}

const Payloads::Storage& Payloads::storage(const std::string& path, const std::string& name) {
  const auto [entry, is_new] = storages_.try_emplace(path);
  if (!is_new) return entry->second;
  const auto member = members_.find(folder_ + path);
  if (member == members_.end())
    throw UserError("INGOT-U504",
                    fmt::format("the archive lacks '{}{}', the values of '{}'", folder_, path, name));
  const Bytes bytes = member->second.data;
  entry->second = {bytes, owner_, member->second.crc32};
  // torch aligns payloads in the file; a copy of the file in memory may have any address.
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kAlignment != 0) {
    const Tensor copy = make_tensor(DType::kU8, {static_cast<int64_t>(bytes.size())});
    std::memcpy(copy.data.get(), bytes.data(), bytes.size());
    entry->second = {Bytes(copy.data.get(), bytes.size()), copy.data, member->second.crc32};
  }
  return entry->second;
}

std::vector<std::string> Payloads::names() const {
  std::vector<std::string> names;
  for (const auto& [name, meta] : config_) names.emplace_back(name);
  return names;
}

bool Payloads::is_pickled(const std::string& name) const {
  const std::optional<Json> pickled = config_.at(name).find("use_pickle");
  return pickled && pickled->boolean();
}

void Payloads::verify() const {
  std::vector<const std::pair<const std::string, Storage>*> all;
  for (const auto& entry : storages_) all.push_back(&entry);
  std::vector<uint8_t> intact(all.size());
  for_each_parallel(all.size(),
                    [&](size_t i) { intact[i] = crc32(all[i]->second.bytes) == all[i]->second.crc32; });
  const auto bad = std::ranges::find(intact, 0);
  if (bad == intact.end()) return;
  const std::string& path = all[static_cast<size_t>(bad - intact.begin())]->first;
  throw UserError("INGOT-U505", fmt::format("'{}{}' is damaged: its checksum is wrong", folder_, path),
                  "copy the file again");
}

OwnedView Payloads::find(const std::string& name, ReadContext& context) {
  const auto found = config_.find(name);
  if (found == config_.end())
    throw UserError("INGOT-U504", fmt::format("the archive has no values for '{}'", name));
  const Json meta_json = found->second;
  if (is_pickled(name))
    throw UnsupportedError("INGOT-N503", fmt::format("'{}' is a tensor subclass, which torch pickles", name),
                           "convert it to plain tensors before the export, with "
                           "torchao.utils.unwrap_tensor_subclass(model) for torchao's");
  const Json tensor_json = meta_json.at("tensor_meta");
  const aten::TensorMeta meta = read_tensor_meta(tensor_json, context);
  TensorView view{.data = nullptr, .dtype = meta.dtype};
  for (const Dim& size : meta.shape) view.shape.push_back(concrete(size, name));
  for (const Dim& stride : meta.strides) view.strides.push_back(concrete(stride, name));
  const int64_t offset = concrete(read_dim(tensor_json.at("storage_offset"), context), name);
  const int64_t end = end_of(view, offset, name);

  const Storage& source = storage(std::string(meta_json.at("path_name").text()), name);
  const int64_t item_bytes = bit_width(meta.dtype) / 8;
  if (end > 0 && source.bytes.empty())
    throw UserError("INGOT-U509", fmt::format("the archive leaves out the values of '{}'", name),
                    "export the model with real weights, not under a FakeTensorMode");
  if (end > static_cast<int64_t>(source.bytes.size()) / item_bytes)
    refuse_shape(name, "it reaches outside of its storage");
  // The view is only read: programs treat weights as constant.
  if (end > 0) view.data = const_cast<std::byte*>(source.bytes.data()) + offset * item_bytes;
  return {std::move(view), source.owner};
}

}  // namespace ingot::core::pt2
