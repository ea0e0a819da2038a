// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "passes/converted_values.h"
#include "passes/hoist.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

enum : size_t { kNormInput, kNormScale, kNormShift };              // operands of norms
enum : size_t { kInputOfLinear, kWeightOfLinear, kBiasOfLinear };  // of linear

using Invariant = std::set<const Node*>;

bool is_norm(const Node& node) {
  return (node.op == &ops::layer_norm || node.op == &ops::rms_norm) &&
         node.attributes<ops::Normalization>().axes == 1;
}

bool are_invariant(const Node& node, const Invariant& invariant) {
  return std::all_of(node.operands.begin() + 1, node.operands.end(), [&](const Value* value) {
    return value == nullptr ||
           (invariant.contains(value->producer) && value->type.dtype == node.results[0]->type.dtype);
  });
}

// The norm is of no use if it is computed for another reader all the same.
bool is_foldable(const Graph& graph, const Node& norm, const Invariant& invariant, const NormRule& rule) {
  if (!is_norm(norm)) return false;
  const Value* result = norm.results[0];
  return are_invariant(norm, invariant) && !graph.is_output(result) && !result->users.empty() &&
         std::ranges::all_of(result->users, [&](const Node* user) {
           return user->op == &ops::linear && user->operands[kInputOfLinear] == result &&
                  are_invariant(*user, invariant) && rule(norm, *user);
         });
}

Value* as_f32(Graph& graph, Value* value) { return converted(graph, value, DType::kF32); }

// linear(norm(x) * scale + shift) + bias = normalized(x) (weight * scale)^T + (weight shift + bias).
Value* folded(Graph& graph, const Node& norm, const Node& linear) {
  const DType dtype = linear.results[0]->type.dtype;
  Value* weight = linear.operands[kWeightOfLinear];
  Value* bias = linear.has_operand(kBiasOfLinear) ? linear.operands[kBiasOfLinear] : nullptr;
  if (norm.has_operand(kNormShift)) {
    Value* shift = graph.call(ops::linear, {as_f32(graph, norm.operands[kNormShift]), as_f32(graph, weight)});
    if (bias != nullptr) shift = graph.call(ops::add, {shift, as_f32(graph, bias)});
    bias = converted(graph, shift, dtype);
  }
  if (norm.has_operand(kNormScale)) weight = graph.call(ops::multiply, {weight, norm.operands[kNormScale]});
  Value* sums = nullptr;  // of the weight as it is rounded
  if (norm.op == &ops::layer_norm)
    sums = graph.call(ops::sum, {as_f32(graph, weight)}, ops::Reduce{{1}, false});
  return graph.call(ops::normalized_linear, {norm.operands[kNormInput], weight, bias, sums},
                    ops::NormalizedLinear{norm.attributes<ops::Normalization>().epsilon});
}

}  // namespace

Graph fold_norms(Graph graph, const NormRule& rule, Rewrites& rewrites) {
  const Invariant invariant = invariant_nodes(graph);
  for (Node* norm : graph.node_list()) {
    if (!is_foldable(graph, *norm, invariant, rule) || !rewrites.allow(*norm)) continue;
    const std::vector<Node*> readers = norm->results[0]->users;
    for (Node* linear : readers) {
      const Graph::InsertBefore scope(graph, linear);
      replace_all_uses(graph, linear->results[0], folded(graph, *norm, *linear));
    }
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
