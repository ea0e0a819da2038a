// SPDX-License-Identifier: Apache-2.0
// Copies into a layout with another innermost dim: squares are turned in registers, so that both sides move
// whole cache lines.
//
//   for each index of the other dims, for each line of 16 elements along the operand's run (an item)
//     for each vector along the result's run
//       load squares along the operand's run, turn, store along the result's run
#pragma once

#include "backends/cpu/compile/schedule.h"

namespace ingot::core::cpu {

// A relayout between permutations, of elements of 32 bits. A run is the dims that lie innermost on one side,
// and follow each other in the same order on the other.
Fit supports_transposition(const Node& node);
ScheduledKernel plan_transposition(const Node& node, const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
