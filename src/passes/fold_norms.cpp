// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/ops.h"
#include "passes/norm_folding.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

// The norm is of no use if it is computed for another reader all the same.
bool is_foldable(const Graph& graph, const Node& norm, const Invariant& invariant, const NormRule& rule) {
  if (!is_row_norm(norm)) return false;
  const Value* result = norm.results[0];
  return are_operands_invariant(norm, invariant) && !graph.is_output(result) && !result->users.empty() &&
         std::ranges::all_of(result->users, [&](const Node* user) {
           return user->op == &ops::linear && user->operands[0] == result &&
                  are_operands_invariant(*user, invariant) && rule(norm, *user);
         });
}

}  // namespace

Graph fold_norms(Graph graph, const NormRule& rule, Rewrites& rewrites) {
  const Invariant invariant = invariant_nodes(graph);
  for (Node* norm : graph.node_list()) {
    if (!is_foldable(graph, *norm, invariant, rule) || !rewrites.allow(*norm)) continue;
    const std::vector<Node*> readers = norm->results[0]->users;
    for (Node* linear : readers) {
      const Graph::InsertBefore scope(graph, linear);
      replace_all_uses(graph, linear->results[0],
                       linear_of_norm_input(graph, *norm, *linear, nullptr, nullptr));
    }
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
