// SPDX-License-Identifier: Apache-2.0
// Paths in the texts of the API and of messages are UTF-8 on Windows, where files have names in UTF-16, and
// bytes as they are elsewhere. Never make a path of a `char` string in another way: Windows would take it for
// the code page of the process.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace ingot::core {

std::filesystem::path to_path(std::string_view text);  // UserError INGOT-U120 on Windows if it is not UTF-8
std::string to_text(const std::filesystem::path& path);

}  // namespace ingot::core
