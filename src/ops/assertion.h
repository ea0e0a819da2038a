// SPDX-License-Identifier: Apache-2.0
// Assertions on values. Not in ops.def: the operator computes nothing, and only front ends create it.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ingot::core::ops {

struct Assertion {
  std::string message;  // of the user's program, may be empty
  static constexpr auto fields() { return std::tuple{Field{"message", &Assertion::message}}; }
};

// Ends the run with INGOT-U313 unless all elements of its operand are true.
extern const Op assert_true;

}  // namespace ingot::core::ops
