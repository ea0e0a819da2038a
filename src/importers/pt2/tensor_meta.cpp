// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/tensor_meta.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

using NumberedName = std::pair<int64_t, std::string_view>;

template <size_t N>
std::string find_name(const std::array<NumberedName, N>& names, Json value, std::string_view what,
                      const ReadContext& context) {
  const int64_t number = value.integer();
  const auto found = std::ranges::find(names, number, &NumberedName::first);
  if (found == names.end()) refuse_unknown(context, what, std::to_string(number));
  return std::string(found->second);
}

}  // namespace

DType read_dtype(Json value, const ReadContext& context) {
  constexpr std::array<std::pair<int64_t, DType>, 17> kTypes = {{{1, DType::kU8},
                                                                 {2, DType::kI8},
                                                                 {3, DType::kI16},
                                                                 {4, DType::kI32},
                                                                 {5, DType::kI64},
                                                                 {6, DType::kF16},
                                                                 {7, DType::kF32},
                                                                 {8, DType::kF64},
                                                                 {10, DType::kC64},
                                                                 {11, DType::kC128},
                                                                 {12, DType::kBool},
                                                                 {13, DType::kBF16},
                                                                 {28, DType::kU16},
                                                                 {29, DType::kE4M3},
                                                                 {30, DType::kE5M2},
                                                                 {34, DType::kU32},
                                                                 {35, DType::kU64}}};
  const int64_t number = value.integer();
  for (const auto& [known, dtype] : kTypes)
    if (known == number) return dtype;
  constexpr std::array<NumberedName, 4> kForeign = {
      {{9, "complex32"}, {31, "float8_e4m3fnuz"}, {32, "float8_e5m2fnuz"}, {33, "float8_e8m0fnu"}}};
  const std::string name = find_name(kForeign, value, "dtype", context);
  throw UnsupportedError("INGOT-N504", fmt::format("tensors of dtype {} are not supported", name));
}

std::string read_layout(Json value, const ReadContext& context) {
  constexpr std::array<NumberedName, 7> kLayouts = {{{1, "sparse_coo"},
                                                     {2, "sparse_csr"},
                                                     {3, "sparse_csc"},
                                                     {4, "sparse_bsr"},
                                                     {5, "sparse_bsc"},
                                                     {6, "mkldnn"},
                                                     {7, "strided"}}};
  return find_name(kLayouts, value, "layout", context);
}

std::string read_memory_format(Json value, const ReadContext& context) {
  constexpr std::array<NumberedName, 4> kFormats = {
      {{1, "contiguous_format"}, {2, "channels_last"}, {3, "channels_last_3d"}, {4, "preserve_format"}}};
  return find_name(kFormats, value, "memory format", context);
}

aten::Device read_device(Json value) {
  aten::Device device{.type = std::string(value.at("type").text())};
  if (const std::optional<Json> index = value.find("index"))
    device.index = static_cast<int>(index->integer());
  return device;
}

Dim read_dim(Json value, ReadContext& context) {
  const auto [tag, content] = value.only_member();
  if (tag == "as_int") return content.integer();
  if (tag != "as_expr") refuse_unknown(context, "symbolic integer", tag);
  const Dim dim = context.dims.read(std::string(content.at("expr_str").text()));
  const std::optional<Json> hint = content.find("hint");
  if (hint && dim.is_symbol() && hint->only_member().key == "as_int")
    context.dims.set_typical(dim.symbol_name(), hint->only_member().value.integer());
  return dim;
}

aten::TensorMeta read_tensor_meta(Json value, ReadContext& context) {
  aten::TensorMeta meta;
  meta.dtype = read_dtype(value.at("dtype"), context);
  if (const std::string layout = read_layout(value.at("layout"), context); layout != "strided")
    throw UnsupportedError("INGOT-N505", fmt::format("tensors of layout {} are not supported", layout));
  for (const Json size : value.at("sizes").items()) meta.shape.push_back(read_dim(size, context));
  for (const Json stride : value.at("strides").items()) meta.strides.push_back(read_dim(stride, context));
  if (meta.strides.size() != meta.shape.size())
    throw UserError("INGOT-U503", fmt::format("a tensor has {} sizes and {} strides", meta.shape.size(),
                                              meta.strides.size()));
  return meta;
}

}  // namespace ingot::core::pt2
