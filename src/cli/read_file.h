// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace ingot::cli {

// CommandError with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);
void check_readable(const std::filesystem::path& path);

}  // namespace ingot::cli
