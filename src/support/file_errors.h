// SPDX-License-Identifier: Apache-2.0
// Error handling shared by the file functions. Private to src/support/.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string_view>

#include "support/file_system.h"

namespace ingot::core {

#ifdef ESTALE
constexpr int kFileWasReplaced = ESTALE;
#else  // Windows
constexpr int kFileWasReplaced = EIO;
#endif

// Throws the error for an `errno` value: "cannot ACTION 'PATH': cause".
[[noreturn]] void fail_on_file(std::string_view action, const std::filesystem::path& path, int error);

}  // namespace ingot::core
