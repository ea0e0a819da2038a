// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string_view>

namespace ingot::core::testing {

// Whether tests take all the time that they can use (`make test LONG=1`).
inline bool is_long_mode() {
  const char* const chosen = std::getenv("INGOT_LONG");
  return chosen != nullptr && chosen == std::string_view("1");
}

}  // namespace ingot::core::testing
