// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>

namespace ingot::core::test {

// Whether tests take all the time that they can use (`make test LONG=1`).
inline bool is_long_mode() {
  const char* const chosen = std::getenv("INGOT_LONG");
  return chosen != nullptr && chosen == std::string_view("1");
}

// Of many cases that differ in little, sanitizers, under which each takes ten times as long, see every `nth`.
inline size_t step_of_cases([[maybe_unused]] size_t nth) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  if (!is_long_mode()) return nth;
#endif
  return 1;
}

}  // namespace ingot::core::test
