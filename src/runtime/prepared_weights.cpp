// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepared_weights.h"

#include <algorithm>
#include <array>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/core.h>

#include "cache/entry.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

constexpr size_t kResultAlignment = 64;  // of each result in a file that begins at a page
constexpr size_t kWorthAFile = size_t{1} << 20;

size_t padded(size_t bytes) { return (bytes + kResultAlignment - 1) / kResultAlignment * kResultAlignment; }

template <typename Function>
void each_result(const EngineData& data, Function&& function) {
  for (size_t id = 0; id < data.weights.size(); ++id) {
    if (data.weights[id].init() != nullptr) function(id, data.weights[id]);
  }
}

// All that decides the results of init: the program with its code and constants, and the weights by digest.
std::string text_of(const EngineFile& file) {
  const EngineData& data = file.data();
  std::string text = fmt::format("for {}\n", data.target);
  for (const SectionInfo& section : file.sections()) {
    if (section.name != "key" && section.name != "metadata")
      text += fmt::format("{} {}\n", section.name, hex(section.digest));
  }
  each_result(data, [&](size_t id, const WeightData& weight) {
    text += fmt::format("result {} is {} {}\n", weight.init()->output, id, to_string(weight.type));
  });
  for (const SourceWeight& source : data.sources) text += fmt::format("weight {}\n", hex(source.digest));
  return text;
}

// Zero if the version of a file is unknown.
Digest mark_of(const WeightsFiles& files) {
  std::string text;
  for (const WeightsFile& file : files) {
    if (file.version == FileVersion{}) return {};
    text += fmt::format("{} {} {}\n", to_text(file.path), file.version.size, file.version.modified);
  }
  return digest(as_bytes(text));
}

CacheKey aligned_key(std::string text) {
  const size_t beyond = value_offset(make_key(EntryKind::kWeights, text)) % kResultAlignment;
  text.append((kResultAlignment - beyond) % kResultAlignment, '\n');
  return make_key(EntryKind::kWeights, text);
}

}  // namespace

PreparedWeights::PreparedWeights(std::shared_ptr<const EngineFile> file, std::shared_ptr<DiskStore> store)
    : file_(std::move(file)), store_(std::move(store)) {
  each_result(file_->data(), [&](size_t, const WeightData& weight) { bytes_ += weight.bytes; });
  const auto is_shard = [](const SourceWeight& source) { return !source.shards.empty(); };
  const bool has_shards = std::ranges::any_of(file_->data().sources, is_shard);
  if (file_->data().devices.empty() && bytes_ >= kWorthAFile && !has_shards)
    key_ = aligned_key(text_of(*file_));
}

PreparedWeights::Found PreparedWeights::find(const WeightsFiles& files, WeightSet& weights) const {
  if (!key_) return Found::kNothing;
  const DiskStore::Mapped entry = store_->map(*key_);
  size_t bytes = sizeof(Digest);
  each_result(file_->data(), [&](size_t, const WeightData& weight) { bytes += padded(weight.bytes); });
  if (entry.file == nullptr || entry.value.size() != bytes) return Found::kNothing;
  const std::byte* next = entry.value.data();
  each_result(file_->data(), [&](size_t id, const WeightData& weight) {
    weights.set(id, {entry.file, next});
    next += padded(weight.bytes);
  });
  const Digest mark = mark_of(files);
  const bool is_same = mark != Digest{} && std::ranges::equal(mark, Bytes(next, mark.size()));
  return is_same ? Found::kOfTheseFiles : Found::kOfOtherFiles;
}

void PreparedWeights::keep(const WeightsFiles& files, const WeightSet& weights) const {
  if (!key_) return;
  static constexpr std::array<std::byte, kResultAlignment> kZeros{};
  std::vector<Bytes> parts;
  bool has_all = true;
  each_result(file_->data(), [&](size_t id, const WeightData& weight) {
    has_all &= weights.data[id] != nullptr || weight.bytes == 0;
    parts.emplace_back(weights.data[id].get(), weight.bytes);
    parts.emplace_back(kZeros.data(), padded(weight.bytes) - weight.bytes);
  });
  const Digest mark = mark_of(files);
  parts.emplace_back(mark);
  if (has_all) store_->put(*key_, parts);
}

}  // namespace ingot::core
