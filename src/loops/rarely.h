// SPDX-License-Identifier: Apache-2.0
// Selects whose condition holds for few elements, such as the arguments of a function that need more steps.
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// A select whose first arm reads nothing that the other operands do not read: targets may branch around it.
Expr rarely(Expr condition, Expr rare, Expr usual);
bool is_rare(const ExprNode& node);

}  // namespace ingot::core::loops
