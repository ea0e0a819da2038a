// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/winograd.h"
#include "passes/hoist.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {

Graph use_winograd(Graph graph, const ConvolutionRule& rule, Rewrites& rewrites) {
  const std::set<const Node*> invariant = invariant_nodes(graph);
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::convolution || !invariant.contains(node->operands[1]->producer) || !rule(*node) ||
        !rewrites.allow(*node))
      continue;
    Graph::InsertBefore scope(graph, node);
    const ops::WinogradInput window{node->attributes<ops::Convolution>().padding};
    std::vector<Value*> operands = node->operands;
    operands.insert(operands.begin(), {graph.call(ops::winograd_input, {operands[0]}, window),
                                       graph.call(ops::winograd_weight, {operands[1]})});
    const ops::NewShape shape{node->results[0]->type.shape};
    replace_all_uses(graph, node->results[0], graph.call(ops::winograd_convolution, operands, shape));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
