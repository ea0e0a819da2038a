// SPDX-License-Identifier: Apache-2.0
// The passes that do not depend on the target, in the order of pipeline.cpp. Each takes a graph and returns
// it rewritten; all are idempotent.
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Applies the rule tables of simplify/: identities, views of views, conversions without effect.
Graph simplify(Graph graph);

// Evaluates nodes whose operands are constants, if work and result are small; constants with the same value
// everywhere become `full`, an immediate in kernels. Larger ones are left to the init program.
Graph fold_constants(Graph graph);

// Replaces decomposed operators by the composite: silu, gelu, rms_norm ... May change rounding.
Graph recognize_compositions(Graph graph);

// Convolution or linear followed by batch_norm: scales weight and bias instead (in the init program). May
// change rounding.
Graph fold_batch_norm(Graph graph);

// Replaces nodes that have only a decomposition by simpler ones.
Graph decompose(Graph graph);

// Moves a write into state after the last read of the old value, so that it can be done in place.
Graph reinplace_state(Graph graph);

// Keeps the first of nodes that compute the same value from the same operands.
Graph eliminate_common_subexpressions(Graph graph);

// Removes nodes that reach no output, update or side effect.
Graph eliminate_dead_code(Graph graph);

}  // namespace ingot::core
