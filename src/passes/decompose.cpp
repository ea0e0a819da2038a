// SPDX-License-Identifier: Apache-2.0
#include "passes/passes.h"
#include "passes/replace_all_uses.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void replace(Graph& graph, Node* node) {
  std::vector<Value*> simpler;
  {
    Graph::InsertBefore scope(graph, node);
    simpler = node->op->decompose(graph, *node);
  }
  invariant(simpler.size() == node->results.size(), "a decomposition must have as many results as its node");
  for (size_t i = 0; i < simpler.size(); ++i) {
    Value* result = node->results[i];
    invariant(simpler[i]->type == result->type, "a decomposition must have the types of its node");
    replace_all_uses(graph, result, simpler[i]);
  }
  graph.erase(node);
}

}  // namespace

Graph decompose(Graph graph) {
  bool changed = true;
  while (changed) {  // a decomposition may contain nodes that need one too
    changed = false;
    for (Node* node : graph.node_list()) {
      if (node->op->decompose == nullptr) continue;
      replace(graph, node);
      changed = true;
    }
  }
  return graph;
}

}  // namespace ingot::core
