// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"
#include "ops/select.h"
#include "passes/converted_values.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {

Graph widen_contractions(Graph graph, const ComputeDTypeRule& rule, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (!node->op->traits.has(Trait::kContraction) || node->results.size() != 1) continue;
    const DType own = node->results[0]->type.dtype;
    const ComputeDType wide = rule(*node);
    if (wide.dtype == own || !rewrites.allow(*node)) continue;
    Graph::InsertBefore scope(graph, node);
    std::vector<Value*> operands = node->operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      const bool stays = i == 1 && !wide.converts_weight;
      if (operands[i] == nullptr || operands[i]->type.dtype != own || stays) continue;
      operands[i] = converted(graph, operands[i], wide.dtype);
    }
    Value* result = graph.call(*node->op, std::move(operands), node->values);
    const ops::Convert back{.dtype = own, .may_stay_wide = true};
    replace_all_uses(graph, node->results[0], graph.call(ops::convert, {result}, back));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
