// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "passes/passes.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

bool may_be_shared(const Node& node) {
  const Traits traits = node.op->traits;
  return !traits.has(Trait::kRandom) && !traits.has(Trait::kSideEffect) && node.graphs.empty() &&
         !node.results.empty();
}

Bytes literal_bytes(const Node& node) { return {node.literal->data.get(), node.literal->bytes()}; }

class Numbering {
 public:
  // Equal for nodes that compute the same value; literals are compared by their checksum.
  std::string key(const Node& node) {
    std::vector<size_t> operands;
    for (const Value* operand : node.operands) operands.push_back(number(operand));
    if (node.op->traits.has(Trait::kCommutative)) std::ranges::sort(operands);
    const Side side = node.op->traits.has(Trait::kSource) ? Side::kAny : node.side;
    std::string text = fmt::format("{} {}", node.op->name, static_cast<int>(side));
    for (const size_t operand : operands) text += fmt::format(",{}", operand);
    for (const AttributeValue& value : node.values) text += ";" + to_string(value);
    for (const Value* result : node.results) text += ":" + to_string(result->type);
    if (node.literal != nullptr) text += "#" + hex(checksum(literal_bytes(node)));
    return text;
  }

 private:
  size_t number(const Value* value) { return numbers_.try_emplace(value, numbers_.size()).first->second; }

  std::unordered_map<const Value*, size_t> numbers_;
};

bool has_same_literal(const Node& a, const Node& b) {
  if (a.literal == nullptr || b.literal == nullptr) return a.literal == b.literal;
  const Bytes left = literal_bytes(a), right = literal_bytes(b);
  return left.size() == right.size() && std::memcmp(left.data(), right.data(), left.size()) == 0;
}

}  // namespace

Graph eliminate_common_subexpressions(Graph graph, Rewrites& rewrites) {
  Numbering numbering;
  std::unordered_map<std::string, Node*> first;
  for (Node* node : graph.node_list()) {
    if (!may_be_shared(*node)) continue;
    const auto [entry, is_new] = first.try_emplace(numbering.key(*node), node);
    if (is_new || !has_same_literal(*entry->second, *node) || !rewrites.allow(*node)) continue;
    for (size_t i = 0; i < node->results.size(); ++i) {
      graph.replace_uses(node->results[i], entry->second->results[i]);
    }
    graph.erase(node);
  }
  return graph;
}

}  // namespace ingot::core
