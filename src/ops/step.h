// SPDX-License-Identifier: Apache-2.0
// What becomes of small changes of operands, such as roundings.
#pragma once

#include "ir/graph.h"

namespace ingot::core::ops {

// Whether a result jumps where operands change a little: it makes integers or bools of floats, is one of the
// floating-point functions that do, or has values on one side of an edge alone, as sqrt and log have.
bool is_step(const Node& node);

// Whether each element of the result is an element of an operand, or its negation, whose choice does not
// jump: rounding operands or the result is the same.
bool passes_elements(const Node& node);

}  // namespace ingot::core::ops
