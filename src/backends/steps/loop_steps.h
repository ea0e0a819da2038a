// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Steps of the node's plain loops at `sizes`: parallel points times reduction steps. For a routine, the
// elements of its largest operand.
double loop_steps(const Node& node, const SymbolValues& sizes);
// Bytes of the elements of its operands and results.
double moved_bytes(const Node& node, const SymbolValues& sizes);

}  // namespace ingot::core
