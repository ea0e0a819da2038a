// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/converters.h"

#include <unordered_map>

namespace ingot::core::aten {
namespace {

using Family = std::span<const Converter> (*)();

constexpr Family kFamilies[] = {
#define FAMILY(name) name##_converters,
#include "importers/aten/converters/families.def"
#undef FAMILY
};

std::unordered_map<std::string_view, const Converter*> index_by_target() {
  std::unordered_map<std::string_view, const Converter*> index;
  for (const Converter* converter : all_converters()) index.emplace(converter->target, converter);
  return index;
}

}  // namespace

std::vector<const Converter*> all_converters() {
  std::vector<const Converter*> all;
  for (const Family family : kFamilies) {
    for (const Converter& converter : family()) all.push_back(&converter);
  }
  return all;
}

const Converter* find_converter(std::string_view target) {
  static const auto index = index_by_target();
  const auto found = index.find(target);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace ingot::core::aten
