// SPDX-License-Identifier: Apache-2.0
// Steps in execution order -> a Program: buffers, lifetimes, aliasing and the symbolic arena order.
#pragma once

#include "plan/plan_input.h"

namespace ingot::core {

// Greedy by size, by breadth, and by size x duration at the typical sizes; the best becomes the order
// relation of engine/program.h. Results share a dying operand's buffer for kInPlace and elementwise steps.
Program plan_program(const PlanInput& input, PlanReport* report = nullptr);

}  // namespace ingot::core
