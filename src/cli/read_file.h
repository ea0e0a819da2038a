// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::cli {

// CommandError with the path and the system's reason.
std::string read_file(const std::string& path);
void check_readable(const std::string& path);

}  // namespace ingot::cli
