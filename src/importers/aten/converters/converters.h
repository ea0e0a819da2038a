// SPDX-License-Identifier: Apache-2.0
// The table of ATen overloads: a converter turns one call into nodes. Each family has a file in this folder
// and a line in families.def.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

struct Converter {
  std::string_view target;  // "aten.linear.default"; an in-place overload needs none: it is its functional
                            // variant and a write
  void (*convert)(Call& call);
  // A composite that torch may decompose if it is available. Files are read without torch.
  bool composed = false;
  bool binds_sizes = false;  // sizes of its results may follow from data: the call makes their symbols
};

inline constexpr bool kComposed = true, kBindsSizes = true;

#define FAMILY(name) std::span<const Converter> name##_converters();
#include "importers/aten/converters/families.def"
#undef FAMILY

std::span<const Converter> complex_composites();           // sorted; they are not among all_converters()
const Converter* find_converter(std::string_view target);  // null if there is none
std::vector<const Converter*> all_converters();

}  // namespace ingot::core::aten
