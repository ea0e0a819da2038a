// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/converters/converters.h"

#include <algorithm>
#include <vector>

namespace ingot::core::onnx {
namespace {

std::vector<const Converter*> sorted_converters() {
  std::vector<const Converter*> all;
#define FAMILY(name) \
  for (const Converter& converter : name##_converters()) all.push_back(&converter);
#include "importers/onnx/converters/families.def"
#undef FAMILY
  std::ranges::sort(all, {}, &Converter::name);
  return all;
}

}  // namespace

const Converter* find_converter(std::string_view name) {
  static const std::vector<const Converter*> table = sorted_converters();
  const auto found = std::ranges::lower_bound(table, name, {}, &Converter::name);
  return found == table.end() || (*found)->name != name ? nullptr : *found;
}

}  // namespace ingot::core::onnx
