// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fnmatch.h>

#include <string>
#include <string_view>

namespace ingot::core {

// Whether a user's pattern, with * and ?, fits all of a name.
inline bool fits_pattern(const std::string& pattern, std::string_view name) {
  return ::fnmatch(pattern.c_str(), std::string(name).c_str(), 0) == 0;
}

}  // namespace ingot::core
