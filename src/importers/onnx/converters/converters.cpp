// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/converters/converters.h"

#include <algorithm>
#include <limits>
#include <map>
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

std::map<std::string_view, size_t> read_most_inputs() {
  std::map<std::string_view, size_t> table;
  const auto add = [&](size_t most, std::string_view names) {
    while (!names.empty()) {
      const size_t end = std::min(names.find(' '), names.size());
      table.emplace(names.substr(0, end), most);
      names.remove_prefix(std::min(end + 1, names.size()));
    }
  };
#define MOST_INPUTS(most, names) add(most, names);
#include "importers/onnx/converters/most_inputs.def"
#undef MOST_INPUTS
  return table;
}

}  // namespace

size_t most_inputs(std::string_view name) {
  static const std::map<std::string_view, size_t> table = read_most_inputs();
  const auto found = table.find(name);
  return found == table.end() ? std::numeric_limits<size_t>::max() : found->second;
}

const Converter* find_converter(std::string_view name) {
  static const std::vector<const Converter*> table = sorted_converters();
  const auto found = std::ranges::lower_bound(table, name, {}, &Converter::name);
  return found == table.end() || (*found)->name != name ? nullptr : *found;
}

}  // namespace ingot::core::onnx
