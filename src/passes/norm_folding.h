// SPDX-License-Identifier: Apache-2.0
// Shared by passes that compute a linear layer behind a norm from what the norm reads.
#pragma once

#include "ir/graph.h"
#include "passes/hoist.h"

namespace ingot::core {

enum : size_t { kNormInput, kNormScale, kNormShift };  // operands of layer_norm and rms_norm

// Whether the node is a norm over the last dim.
bool is_row_norm(const Node& node);

// Whether all operands but the first are constant, and of the result's dtype.
using Invariant = std::set<const Node*>;
bool are_operands_invariant(const Node& node, const Invariant& invariant);

// A linear layer of the norm's input in place of one of its result. `mean`, `scale`: of the rows; null: it
// computes them.
Value* linear_of_norm_input(Graph& graph, const Node& norm, const Node& linear, Value* mean, Value* scale);

}  // namespace ingot::core
