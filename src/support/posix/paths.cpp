// SPDX-License-Identifier: Apache-2.0
#include "support/paths.h"

namespace ingot::core {

std::filesystem::path to_path(std::string_view text) { return text; }

std::string to_text(const std::filesystem::path& path) { return path.string(); }

}  // namespace ingot::core
