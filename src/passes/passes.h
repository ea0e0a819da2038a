// SPDX-License-Identifier: Apache-2.0
// The passes that ask nothing of the target, in the order of pipeline.cpp. Each takes a graph and returns it
// rewritten; a second run changes nothing.
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Applies the rule tables of simplify/: identities, views of views, conversions that do nothing.
Graph simplify(Graph graph);

// Evaluates nodes whose operands are constants, as long as the work and the result are small; constants of
// one number become `full`, which kernels hold as an immediate. Larger ones are left to the init program.
Graph fold_constants(Graph graph);

// Replaces compositions that a model spells out by the operator that means them: silu, gelu, rms_norm ...
// Roundings may change.
Graph recognize_compositions(Graph graph);

// convolution or linear followed by batch_norm: scales weight and bias instead (the init program does it).
// Roundings may change.
Graph fold_batch_norm(Graph graph);

// Replaces nodes that have only a decomposition by simpler ones.
Graph decompose(Graph graph);

// Moves a write into state behind the last read of the old value, so that it can be done in place.
Graph reinplace_state(Graph graph);

// Of nodes that compute the same from the same, the first stays.
Graph eliminate_common_subexpressions(Graph graph);

// Removes nodes that reach no output, update or side effect.
Graph eliminate_dead_code(Graph graph);

}  // namespace ingot::core
