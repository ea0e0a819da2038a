// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/literals.h"

#include <algorithm>
#include <set>
#include <vector>

#include "evaluate/evaluate.h"
#include "ir/constant.h"
#include "ir/elementwise.h"
#include "ir/symbolic.h"
#include "support/error.h"

namespace ingot::core::onnx {
namespace {

// More is data, not a parameter of an operator: nothing asks for it.
constexpr size_t kMostFolded = 1024;
constexpr int64_t kMostElements = 1 << 16;
// Of one import, against small files that ask for much: elements that are computed by themselves or moved;
// for other operators, elements of all operands times elements of the results.
constexpr int64_t kMostWork = 1 << 26;

bool is_small(const TensorType& type) {
  const auto count = element_count(type).constant();
  return count && *count <= kMostElements;
}

// Loops run as often as their conditions say.
bool is_computed(const Node& node) {
  const Traits traits = node.op->traits;
  if (traits.has(Trait::kRandom) || !node.graphs.empty() || has_symbolic_attributes(node)) return false;
  if (traits.has(Trait::kSource) && node.op != &ops::constant) return false;
  return std::ranges::all_of(node.results, [](const Value* each) { return is_small(each->type); });
}

// All values are small.
int64_t work_of(const Node& node) {
  int64_t read = 1, written = 0;
  for (const Value* operand : node.operands)
    read += operand == nullptr ? 0 : element_count(operand->type).constant().value();
  for (const Value* result : node.results) written += element_count(result->type).constant().value();
  return computes_elements(node) ? read + written : read * written;
}

}  // namespace

bool Literals::is_known(const Value* value) const {
  const auto found = known_.find(value);
  return found != known_.end() && found->second;
}

std::optional<std::vector<Node*>> Literals::nodes_of(Value* value) const {
  std::vector<Node*> order;
  std::set<const Node*> seen;
  std::vector<std::pair<Node*, size_t>> stack{{value->producer, 0}};  // with the operand to visit next
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == 0 && (node == nullptr || seen.size() == kMostFolded || !is_computed(*node)))
      return std::nullopt;
    if (next == node->operands.size()) {
      if (seen.insert(node).second) order.push_back(node);
      stack.pop_back();
      continue;
    }
    Value* operand = node->operands[next++];
    if (operand == nullptr || is_known(operand) || seen.contains(operand->producer)) continue;
    stack.emplace_back(operand->producer, 0);
  }
  return order;
}

std::optional<Tensor> Literals::find(Value* value) {
  const auto [entry, is_new] = known_.try_emplace(value);
  if (!is_new) return entry->second;
  const std::optional<std::vector<Node*>> nodes = nodes_of(value);
  if (!nodes) return std::nullopt;
  if (value->producer->op == &ops::constant) return entry->second = *value->producer->literal;
  int64_t work = 0;
  for (const Node* node : *nodes) work += work_of(*node);
  if (work > kMostWork - work_) return std::nullopt;
  work_ += work;
  Graph graph("literal");
  std::map<const Value*, Value*> copies{{nullptr, nullptr}};
  for (const Node* node : *nodes) {
    std::vector<Value*> operands;
    for (const Value* operand : node->operands) {
      if (is_known(operand) && !copies.contains(operand))
        copies[operand] = graph.add_constant(*known_.at(operand));
      operands.push_back(copies.at(operand));
    }
    Node* copy = graph.add_copy(*node, std::move(operands));
    for (size_t i = 0; i < copy->results.size(); ++i) copies[node->results[i]] = copy->results[i];
  }
  graph.outputs = {copies.at(value)};
  try {
    return entry->second = evaluate_with(graph, {}, {}, {}).outputs.at(0);
  } catch (const UserError&) {  // an index out of range: running the model reports it
    return std::nullopt;
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

}  // namespace ingot::core::onnx
