// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "ops/attention.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "passes/converted_values.h"
#include "passes/hoist.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kWeightOperand = 1;

// Weights may be stored in a narrower dtype beside f32: those contractions stay as they are.
bool is_wide_contraction(const Node& node) {
  const auto is_wide = [](const Value* value) { return value->type.dtype == DType::kF32; };
  return node.op->traits.has(Trait::kContraction) && node.results.size() == 1 && is_wide(node.results[0]) &&
         is_wide(node.operands[0]) && is_wide(node.operands[kWeightOperand]);
}

// Masks are added to scores, and hold the lowest number of their dtype.
DType dtype_of(const Node& node, const PrecisionChoice& choice, size_t operand) {
  if (node.op == &ops::attention && operand == ops::kMask) return DType::kF32;
  return operand == kWeightOperand ? choice.weight : choice.operands;
}

// Rounds the node's result for all of its readers, which then share what is stored. `next`: the node after
// it.
void round_result(Graph& graph, const Node& node, DType dtype, Node* next) {
  Value* value = node.results[0];
  if (graph.is_output(value)) return;
  const Graph::InsertBefore scope(graph, next);
  Value* narrow = graph.call(ops::convert, {value}, ops::Convert{.dtype = dtype, .may_stay_wide = true});
  graph.replace_uses(value, converted(graph, narrow, value->type.dtype));
  graph.set_operand(narrow->producer, 0, value);
}

// Replaces the contraction by one of the choice's dtypes, whose result is widened.
void lower(Graph& graph, Node* node, const PrecisionChoice& choice) {
  const Graph::InsertBefore scope(graph, node);
  std::vector<Value*> operands = node->operands;
  for (size_t i = 0; i < operands.size(); ++i) {
    const DType dtype = dtype_of(*node, choice, i);
    if (operands[i] == nullptr || operands[i]->type.dtype != DType::kF32 || dtype == DType::kF32) continue;
    operands[i] = narrowed(graph, operands[i], dtype);
  }
  Value* result = graph.call(*node->op, std::move(operands), node->values);
  replace_all_uses(graph, node->results[0], converted(graph, result, DType::kF32));
}

// Nodes that compute what contractions read in f16. bf16 has only eight significant bits: what other nodes
// read and add up over the layers stays f32.
std::set<const Node*> producers_in_half(const std::vector<std::pair<Node*, PrecisionChoice>>& choices,
                                        const std::set<const Node*>& invariant) {
  std::set<const Node*> found;
  for (const auto& [node, choice] : choices) {
    for (size_t i = 0; i < node->operands.size(); ++i) {
      const DType dtype = dtype_of(*node, choice, i);
      if (node->operands[i] == nullptr || dtype != DType::kF16) continue;
      const Node* source = source_of(node->operands[i]);
      const bool is_computed = source != nullptr && !source->operands.empty() && !invariant.contains(source);
      if (is_computed && source->results.size() == 1 && source->results[0]->type.dtype == DType::kF32)
        found.insert(source);
    }
  }
  return found;
}

}  // namespace

Graph lower_precision(Graph graph, const PrecisionRule& rule, Rewrites& rewrites) {
  const std::set<const Node*> invariant = invariant_nodes(graph);
  std::vector<std::pair<Node*, PrecisionChoice>> choices;
  for (Node* node : graph.node_list()) {
    if (!is_wide_contraction(*node) || invariant.contains(node) || rewrites.is_disabled(*node)) continue;
    const bool has_fixed_weight = invariant.contains(node->operands[kWeightOperand]->producer);
    PrecisionChoice choice = rule({*node, has_fixed_weight, graph.symbols});
    if (choice.is_narrow() && rewrites.allow(*node)) choices.emplace_back(node, std::move(choice));
  }
  const std::set<const Node*> producers = producers_in_half(choices, invariant);
  const std::vector<Node*> nodes = graph.node_list();
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    if (producers.contains(nodes[i])) round_result(graph, *nodes[i], DType::kF16, nodes[i + 1]);
  }
  for (const auto& [node, choice] : choices) lower(graph, node, choice);
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
