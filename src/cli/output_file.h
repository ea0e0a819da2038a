// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>

namespace ingot::cli {

// CommandError if no file can be made at `path`, before any work is done for it: its folder is missing, or it
// is a folder.
void check_output_path(const std::filesystem::path& path);

// `write` fills the file that it is given, which then takes the name `path`: readers find the old file or the
// whole new one. Nothing is left behind if `write` throws, or says that it could not.
void write_whole_file(const std::filesystem::path& path,
                      const std::function<bool(const std::filesystem::path& temporary)>& write);

}  // namespace ingot::cli
