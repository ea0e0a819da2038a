// SPDX-License-Identifier: Apache-2.0
#include "importers/safetensors/read_safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/core.h>

#include "importers/files/json.h"
#include "support/error.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

struct DTypeName {
  std::string_view name;
  DType dtype;
};
constexpr auto kDTypeNames = std::to_array<DTypeName>({{"BOOL", DType::kBool},
                                                       {"U8", DType::kU8},
                                                       {"I8", DType::kI8},
                                                       {"I16", DType::kI16},
                                                       {"U16", DType::kU16},
                                                       {"I32", DType::kI32},
                                                       {"U32", DType::kU32},
                                                       {"I64", DType::kI64},
                                                       {"U64", DType::kU64},
                                                       {"F16", DType::kF16},
                                                       {"BF16", DType::kBF16},
                                                       {"F32", DType::kF32},
                                                       {"F64", DType::kF64},
                                                       {"F8_E4M3", DType::kE4M3},
                                                       {"F8_E5M2", DType::kE5M2},
                                                       {"C64", DType::kC64}});

class SafetensorsReader {
 public:
  SafetensorsReader(Bytes bytes, std::shared_ptr<const void> owner, const std::string& file)
      : owner_(std::move(owner)), file_(file) {
    uint64_t length = 0;
    if (bytes.size() < sizeof(length)) refuse("it is too short for a .safetensors file");
    std::memcpy(&length, bytes.data(), sizeof(length));
    if (length > bytes.size() - sizeof(length))
      refuse("it is not a .safetensors file, or it ends within its header");
    header_ = bytes.subspan(sizeof(length), length);
    values_ = bytes.subspan(sizeof(length) + length);
  }

  std::vector<NamedTensor> read() const {
    const auto is_metadata = [](std::string_view object, std::string_view key) {
      return object.empty() && key == "__metadata__";
    };
    const JsonDocument document = JsonDocument::parse(header_, file_, is_metadata);
    std::vector<NamedTensor> tensors;
    for (const auto [name, entry] : document.root().members())
      tensors.push_back({std::string(name), {tensor(name, entry), owner_}});
    return tensors;
  }

 private:
  TensorView tensor(std::string_view name, Json entry) const {
    TensorView view{.data = nullptr, .dtype = dtype(name, entry.at("dtype").text())};
    for (const Json size : entry.at("shape").items()) view.shape.push_back(size.integer());
    const JsonItems offsets = entry.at("data_offsets").items();
    if (offsets.size() != 2) refuse(fmt::format("'{}' does not have two offsets", name));
    const int64_t begin = (*offsets.begin()).integer(), end = (*++offsets.begin()).integer();
    const auto size = static_cast<int64_t>(values_.size());
    if (begin < 0 || begin > end || end > size) refuse(fmt::format("'{}' is outside of the file", name));
    int64_t wanted = bit_width(view.dtype) / 8;
    for (const int64_t extent : view.shape) {
      if (extent < 0 || __builtin_mul_overflow(wanted, extent, &wanted))
        refuse(fmt::format("the shape of '{}' is wrong", name));
    }
    if (end - begin != wanted) refuse(fmt::format("'{}' has more or fewer values than its shape", name));
    view.strides = row_major_strides(view.shape);
    view.data = const_cast<std::byte*>(values_.data()) + begin;  // only read
    return view;
  }

  DType dtype(std::string_view name, std::string_view text) const {
    const auto found = std::ranges::find(kDTypeNames, text, &DTypeName::name);
    if (found != kDTypeNames.end()) return found->dtype;
    throw UnsupportedError("INGOT-N510",
                           fmt::format("'{}': the dtype {} of '{}' is not supported", file_, text, name));
  }

  [[noreturn]] void refuse(std::string_view problem) const {
    throw UserError("INGOT-U530", fmt::format("'{}': {}", file_, problem), "write or copy the file again");
  }

  Bytes header_, values_;
  std::shared_ptr<const void> owner_;
  const std::string& file_;
};

}  // namespace

std::vector<NamedTensor> read_safetensors(Bytes bytes, std::shared_ptr<const void> owner,
                                          const std::string& file) {
  return SafetensorsReader(bytes, std::move(owner), file).read();
}

std::vector<NamedTensor> read_safetensors(const std::shared_ptr<const MappedFile>& file) {
  return read_safetensors(file->bytes(), file, to_text(file->path()));
}

}  // namespace ingot::core
