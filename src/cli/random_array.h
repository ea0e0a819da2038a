// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/array_file.h"
#include "ingot/ingot.h"

namespace ingot::cli {

// "ids:1x128,mask:1x128" -> sizes by input name.
std::map<std::string, std::vector<int64_t>> parse_shape_list(const std::string& text);

// Values for one input, the same for the same seed: floats normal, integers 0 or 1, bools true. Without
// `shape`, dynamic dims take their least size, or 1 if that is 0.
Array random_array(const ingot_port& port, const std::vector<int64_t>* shape, uint64_t seed);

}  // namespace ingot::cli
