// SPDX-License-Identifier: Apache-2.0
#include "cli/array_summary.h"

#include <algorithm>
#include <cstring>

#include "ingot/ingot.h"

namespace ingot::cli {
namespace {

template <typename Element>
Summary summarize_as(const Array& array) {
  const size_t count = array.data.size() / sizeof(Element);
  Summary summary;
  for (size_t i = 0; i < count; ++i) {
    Element element;
    std::memcpy(&element, array.data.data() + i * sizeof(Element), sizeof(Element));
    const double value = static_cast<double>(element);
    summary.min = i == 0 ? value : std::min(summary.min, value);
    summary.max = i == 0 ? value : std::max(summary.max, value);
    summary.mean += value / static_cast<double>(count);
  }
  return summary;
}

}  // namespace

std::optional<Summary> summarize(const Array& array) {
  if (std::ranges::find(array.shape, 0) != array.shape.end()) return std::nullopt;
  switch (array.dtype) {
    case INGOT_F32:
      return summarize_as<float>(array);
    case INGOT_F64:
      return summarize_as<double>(array);
    case INGOT_I64:
      return summarize_as<int64_t>(array);
    case INGOT_I32:
      return summarize_as<int32_t>(array);
    case INGOT_I16:
      return summarize_as<int16_t>(array);
    case INGOT_I8:
      return summarize_as<int8_t>(array);
    case INGOT_U8:
    case INGOT_BOOL:
      return summarize_as<uint8_t>(array);
    default:
      return std::nullopt;
  }
}

}  // namespace ingot::cli
