// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <ranges>

#include "ops/attention.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

enum : size_t { kCache, kPositions, kSource };  // operands of index_copy

// The node that writes rows of keys or values into a state, for this attention alone.
Node* cache_write(const Node& attention, size_t operand) {
  const Value* cache = attention.operands[operand];
  Node* write = cache->producer;
  if (write == nullptr || write->op != &ops::index_copy) return nullptr;
  const bool is_rows = write->attributes<ops::Axis>().axis + 2 == static_cast<int64_t>(cache->type.rank());
  const Node* state = write->operands[kCache]->producer;
  const bool is_state = state != nullptr && state->op == &ops::state;
  return is_rows && is_state && cache->users.size() == 1 ? write : nullptr;
}

// What all writes stand before: a product behind all attention, which loads its weights while they run. At
// the end of the graph nothing would hide what they take. Null if there is none.
Node* last_product(const Graph& graph) {
  const std::vector<Node*> nodes = graph.node_list();
  const auto last = std::ranges::find_if(std::views::reverse(nodes), [](const Node* node) {
    return node->op->traits.has(Trait::kContraction) || ops::is_attention(*node->op);
  });
  return last == nodes.rend() || ops::is_attention(*(*last)->op) ? nullptr : *last;
}

void defer(Graph& graph, Node* attention, Node* keys, Node* values, Node* before) {
  {
    const Graph::InsertBefore scope(graph, attention);
    Value* mask = attention->has_operand(ops::kMask) ? attention->operands[ops::kMask] : nullptr;
    Value* result =
        graph.call(ops::cached_attention,
                   {attention->operands[ops::kQuery], keys->operands[kCache], values->operands[kCache], mask,
                    keys->operands[kPositions], keys->operands[kSource], values->operands[kSource]},
                   attention->attributes<ops::Attention>());
    replace_all_uses(graph, attention->results[0], result);
  }
  graph.erase(attention);
  std::optional<Graph::InsertBefore> scope;
  if (before != nullptr) scope.emplace(graph, before);
  for (Node* write : {keys, values}) {
    const Node* last = graph.add_copy(*write, write->operands);
    replace_all_uses(graph, write->results[0], last->results[0]);
    graph.erase(write);
  }
}

}  // namespace

Graph defer_cache_writes(Graph graph, const AttentionRule& rule, Rewrites& rewrites) {
  Node* const before = last_product(graph);
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::attention) continue;
    Node *keys = cache_write(*node, ops::kKey), *values = cache_write(*node, ops::kValue);
    if (keys == nullptr || values == nullptr || keys == values) continue;
    const Value* positions = keys->operands[kPositions];
    if (values->operands[kPositions] != positions || !positions->type.shape[0].is_constant()) continue;
    if (rule(*node, *positions->type.shape[0].constant()) && rewrites.allow(*node))
      defer(graph, node, keys, values, before);
  }
  return graph;
}

}  // namespace ingot::core
