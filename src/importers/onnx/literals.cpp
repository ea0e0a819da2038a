// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/literals.h"

#include <algorithm>
#include <set>
#include <vector>

#include "evaluate/evaluate.h"
#include "ir/constant.h"
#include "support/error.h"

namespace ingot::core::onnx {
namespace {

// More is data, not a parameter of an operator: nothing asks for it.
constexpr size_t kMostFolded = 1024;
constexpr int64_t kMostElements = 1 << 16;

bool is_small(const TensorType& type) {
  const auto count = element_count(type).constant();
  return count && *count <= kMostElements;
}

// The nodes that compute `value`, operands first; nullopt if they read what is not known.
std::optional<std::vector<Node*>> nodes_of(Value* value) {
  std::vector<Node*> order;
  std::set<const Node*> seen;
  std::vector<std::pair<Node*, size_t>> stack{{value->producer, 0}};  // with the operand to visit next
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == 0) {
      if (node == nullptr || seen.size() == kMostFolded) return std::nullopt;
      const bool is_known = node->op == &ops::constant || !node->op->traits.has(Trait::kSource);
      if (!is_known ||
          !std::ranges::all_of(node->results, is_small,
                               [](const Value* each) -> const TensorType& { return each->type; }))
        return std::nullopt;
    }
    if (next == node->operands.size()) {
      if (seen.insert(node).second) order.push_back(node);
      stack.pop_back();
      continue;
    }
    Value* operand = node->operands[next++];
    if (operand == nullptr || (operand->producer != nullptr && seen.contains(operand->producer))) continue;
    stack.emplace_back(operand->producer, 0);
  }
  return order;
}

}  // namespace

std::optional<Tensor> Literals::find(Value* value) {
  const auto [entry, is_new] = known_.try_emplace(value);
  if (!is_new) return entry->second;
  const std::optional<std::vector<Node*>> nodes = nodes_of(value);
  if (!nodes) return std::nullopt;
  if (value->producer->op == &ops::constant) return entry->second = *value->producer->literal;
  Graph graph("literal");
  std::map<const Value*, Value*> copies;
  for (const Node* node : *nodes) {
    std::vector<Value*> operands;
    for (const Value* operand : node->operands)
      operands.push_back(operand == nullptr ? nullptr : copies.at(operand));
    Node* copy = graph.add_copy(*node, std::move(operands));
    for (size_t i = 0; i < copy->results.size(); ++i) copies[node->results[i]] = copy->results[i];
  }
  graph.outputs = {copies.at(value)};
  try {
    return entry->second = evaluate_with(graph, {}, {}, {}).outputs.at(0);
  } catch (const UserError&) {  // an attribute depends on a symbol
    return std::nullopt;
  }
}

}  // namespace ingot::core::onnx
