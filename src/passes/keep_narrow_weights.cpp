// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"
#include "passes/converted_values.h"
#include "passes/hoist.h"
#include "passes/target_passes.h"

namespace ingot::core {

Graph keep_narrow_weights(Graph graph, const NarrowWeightRule& rule, Rewrites& rewrites) {
  constexpr size_t kWeightOperand = 1;
  const std::set<const Node*> invariant = invariant_nodes(graph);
  for (Node* node : graph.node_list()) {
    if (!node->op->traits.has(Trait::kNarrowWeight)) continue;
    Value* weight = node->operands[kWeightOperand];
    const DType stored = dtype_before_widening(weight);
    if (stored == weight->type.dtype || !invariant.contains(weight->producer) || !rule(*node, stored) ||
        !rewrites.allow(*node))
      continue;
    const Graph::InsertBefore scope(graph, node);
    graph.set_operand(node, kWeightOperand, narrowed(graph, weight, stored));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
