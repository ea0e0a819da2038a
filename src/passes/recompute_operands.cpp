// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "ir/elementwise.h"
#include "ops/alias.h"
#include "ops/ops.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kMostNodes = 32;

bool can_be_recomputed(const Node& node, AliasOffsets& aliases) {
  return node.op->lower != nullptr && node.results.size() == 1 && computes_elements(node) &&
         !aliases.of(node);
}

// The elementwise nodes that compute `value` and, but for the last of them, nothing else. None if there are
// many.
std::set<const Node*> nodes_for(const Graph& graph, const Value& value, AliasOffsets& aliases) {
  std::set<const Node*> own;
  std::vector<const Node*> pending{value.producer};
  const auto serves_others = [&](const Node& node) {
    const Value* result = node.results[0];
    return result != &value &&
           (graph.is_output(result) ||
            std::ranges::any_of(result->users, [&](Node* user) { return !own.contains(user); }));
  };
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    if (node == nullptr || own.contains(node) || !can_be_recomputed(*node, aliases) || serves_others(*node))
      continue;
    own.insert(node);
    if (own.size() > kMostNodes) return {};
    for (const Value* operand : node->operands)
      if (operand != nullptr) pending.push_back(operand->producer);
  }
  return own;
}

// A copy of `value` before `reader`, for it alone.
Value* recomputed(Graph& graph, const Value& value, const std::set<const Node*>& nodes, Node* reader) {
  const Graph::InsertBefore scope(graph, reader);
  std::map<const Value*, Value*> copies;
  for (const Node* node : graph.node_list()) {
    if (!nodes.contains(node)) continue;
    std::vector<Value*> operands;
    for (Value* operand : node->operands) {
      const auto copy = copies.find(operand);
      operands.push_back(copy == copies.end() ? operand : copy->second);
    }
    copies.emplace(node->results[0], graph.add_copy(*node, std::move(operands))->results[0]);
  }
  return copies.at(&value);
}

}  // namespace

Graph recompute_operands(Graph graph, const OperandRule& rule, Rewrites& rewrites) {
  AliasOffsets aliases;
  for (Node* node : graph.node_list()) {
    for (const size_t i : rule(*node)) {
      const Value* operand = node->operands[i];
      if (operand->users.size() < 2 && !graph.is_output(operand)) continue;
      const std::set<const Node*> nodes = nodes_for(graph, *operand, aliases);
      if (nodes.empty() || !rewrites.allow(*node)) continue;
      graph.set_operand(node, i, recomputed(graph, *operand, nodes, node));
    }
  }
  return graph;
}

}  // namespace ingot::core
