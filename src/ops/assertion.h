// SPDX-License-Identifier: Apache-2.0
// The attributes of `assert_true`, which ends the run with INGOT-U313 unless all elements of its operand are
// true. It has no results.
#pragma once

#include <string>

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Assertion {
  std::string message;  // of the user's program, may be empty
  static constexpr auto fields() { return std::tuple{Field{"message", &Assertion::message}}; }
};

}  // namespace ingot::core::ops
