// SPDX-License-Identifier: Apache-2.0
// The passes that do not depend on the target, in the order of pipeline.cpp. Each takes a graph and returns
// it rewritten; all are idempotent. Those that take `rewrites` ask it before each change.
#pragma once

#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "passes/rewrites.h"

namespace ingot::core {

// Applies the rule tables of simplify/: identities, views of views, conversions without effect.
Graph simplify(Graph graph, Rewrites& rewrites);
std::vector<std::string_view> rules_of_simplify();

// Evaluates nodes whose operands are constants, if work and result are small; constants with the same value
// everywhere become `full`, an immediate in kernels. Larger ones are left to the init program.
Graph fold_constants(Graph graph, Rewrites& rewrites);

// Replaces decomposed operators by the composite: silu, gelu, rms_norm ... May change rounding.
Graph recognize_compositions(Graph graph, Rewrites& rewrites);
std::vector<std::string_view> rules_of_recognize_compositions();

// Convolution or linear followed by batch_norm: scales weight and bias instead (in the init program). May
// change rounding.
Graph fold_batch_norm(Graph graph, Rewrites& rewrites);

// Slices before what they select from is computed, where nothing else reads it: classifiers that read the
// first token, and logits of the last one.
Graph slice_early(Graph graph, Rewrites& rewrites);

// Replaces nodes that have only a decomposition by simpler ones.
Graph decompose(Graph graph);

// Moves a write into state after the last read of the old value, so that it can be done in place.
Graph reinplace_state(Graph graph, Rewrites& rewrites);

// Keeps the first of nodes that compute the same value from the same operands.
Graph eliminate_common_subexpressions(Graph graph, Rewrites& rewrites);

// Removes nodes that reach no output, update or side effect.
Graph eliminate_dead_code(Graph graph);

}  // namespace ingot::core
