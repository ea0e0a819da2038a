// SPDX-License-Identifier: Apache-2.0
#include <ranges>
#include <unordered_map>

#include "passes/passes.h"
#include "passes/replace_all_uses.h"

namespace ingot::core {
namespace {

using Positions = std::unordered_map<const Node*, size_t>;

// The first node that uses a result of `node`; null if there is none.
Node* first_user(const Node& node, const Positions& positions) {
  Node* first = nullptr;
  for (const Value* result : node.results) {
    for (Node* user : result->users) {
      if (first == nullptr || positions.at(user) < positions.at(first)) first = user;
    }
  }
  return first;
}

// Of two writes of one value only one can be last: neither has to be after the other.
bool writes_same(const Node& a, const Node& b) {
  return a.op->traits.has(Trait::kInPlace) && a.operands[0] == b.operands[0];
}

// Whether the overwritten operand is read after the write, by nodes that could be before it.
bool is_read_later(const Node& write, const Node* first_user, const Positions& positions) {
  const size_t limit = first_user == nullptr ? SIZE_MAX : positions.at(first_user);
  bool is_read = false;
  for (const Node* reader : write.operands[0]->users) {
    if (reader == &write || positions.at(reader) < positions.at(&write)) continue;
    if (positions.at(reader) >= limit) return false;
    is_read = is_read || !writes_same(*reader, write);
  }
  return is_read;
}

void move_before(Graph& graph, Node* node, Node* place) {
  std::optional<Graph::InsertBefore> scope;
  if (place != nullptr) scope.emplace(graph, place);
  const Node* moved = graph.add_copy(*node, node->operands);
  for (size_t i = 0; i < node->results.size(); ++i) {
    replace_all_uses(graph, node->results[i], moved->results[i]);
  }
  graph.erase(node);
}

Positions positions_of(const Graph& graph) {
  Positions positions;
  for (const Node* node : graph.node_list()) positions.emplace(node, positions.size());
  return positions;
}

}  // namespace

Graph reinplace_state(Graph graph, Rewrites& rewrites) {
  // Users first: moving them allows moving their operands.
  for (Node* node : std::views::reverse(graph.node_list())) {
    if (!node->op->traits.has(Trait::kInPlace)) continue;
    const Positions positions = positions_of(graph);
    Node* user = first_user(*node, positions);
    if (is_read_later(*node, user, positions) && rewrites.allow(*node)) move_before(graph, node, user);
  }
  return graph;
}

}  // namespace ingot::core
