// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/array.h"
#include "ingot/ingot.h"

namespace ingot::cli {

// "ids:1x128,mask:1x128" -> sizes by input name.
std::map<std::string, std::vector<int64_t>> parse_shape_list(const std::string& text);

// An input without values. A dim has the size that `known` has for its expression ("B"), otherwise its
// minimum, or 1 if that is 0.
using KnownSizes = std::map<std::string, int64_t>;
Array smallest_array(const ingot_port& port, const KnownSizes& known);

// Deterministic values for a seed: floats normal, integers 0 or 1, bools true.
void fill_randomly(Array& array, uint64_t seed);

}  // namespace ingot::cli
