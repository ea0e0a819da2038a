// SPDX-License-Identifier: Apache-2.0
// Routines of linear algebra and special functions, beside a peer that has its own library for them.
#pragma once

#include "ir/graph.h"

namespace ingot::core::cpu {

// Elements of the largest operand per nanosecond, on one thread; zeros for other operators.
struct RoutineRates {
  double own = 0, peer = 0;
};
RoutineRates rates_of_routine(const Node& node);

}  // namespace ingot::core::cpu
