// SPDX-License-Identifier: Apache-2.0
// UTF-8 and UTF-16, and the system's errors as values of `errno`. Private to src/support/windows/.
#pragma once

#include <string>
#include <string_view>

namespace ingot::core {

std::string narrow(std::wstring_view text);  // half a surrogate pair becomes U+FFFD
std::wstring widen(std::string_view text);   // empty if `text` is not UTF-8

// The value of `errno` for GetLastError().
int error_number();
// Sets errno to it; returns -1.
int fail_with_last_error();
// The system's text for GetLastError().
std::string last_error_text();

}  // namespace ingot::core
