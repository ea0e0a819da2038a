// SPDX-License-Identifier: Apache-2.0
// Copies into a layout with another innermost dim: squares are transposed in registers, so that both sides
// move whole cache lines.
//
//   for each index of the other dims, for each line of 16 elements along the operand's run (an item)
//     for each vector along the result's run
//       load squares along the operand's run, transpose, store along the result's run
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"

namespace ingot::core::cpu {

// A relayout between permutations or layouts of whole blocks (weights for a matmul: from rows to panels of 16
// columns), of elements of 16, 32 or 64 bits. A run is the dims that are innermost on one side, and
// consecutive in the same order on the other.
Fit supports_transposition(const Node& node);
TemplateKernel plan_transposition(const Node& node, const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
