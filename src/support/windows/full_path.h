// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core {

// Absolute; with the prefix that lifts the limit of 260 characters where it is needed.
std::wstring full_path(const wchar_t* path);

}  // namespace ingot::core
