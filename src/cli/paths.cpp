// SPDX-License-Identifier: Apache-2.0
#include "cli/system.h"

#include "support/paths.h"

namespace ingot::cli {

std::filesystem::path to_path(const std::string& text) { return core::to_path(text); }

std::string to_text(const std::filesystem::path& path) { return core::to_text(path); }

std::string extension_of(const std::string& path) { return to_text(to_path(path).extension()); }

}  // namespace ingot::cli
