// SPDX-License-Identifier: Apache-2.0
// The .npy format (numpy.lib.format): magic string, version, a header that is a Python dict, and the data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/array.h"

namespace ingot::cli {

Array parse_npy(std::span<const char> bytes, const std::string& origin);  // `origin` names the file in errors
std::vector<char> print_npy(const Array& array);

}  // namespace ingot::cli
