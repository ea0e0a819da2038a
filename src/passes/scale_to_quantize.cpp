// SPDX-License-Identifier: Apache-2.0
#include "passes/scale_to_quantize.h"

#include "ops/ops.h"
#include "ops/quantize.h"
#include "passes/hoist.h"
#include "passes/one_user.h"
#include "passes/replace_all_uses.h"
#include "passes/simplify/pattern.h"

namespace ingot::core {
namespace {

constexpr size_t kFactor = 1, kZeroPoint = 2;

bool is_sum_of_integers(const Value* value) {
  const Node* node = value->producer;
  return node != nullptr && node->op == &ops::convert && !is_floating(node->operand_type(0).dtype);
}

Value* zero_point_of(const Node& node) {
  return node.has_operand(kZeroPoint) ? node.operands[kZeroPoint] : nullptr;
}

class Scaling {
 public:
  Scaling(Graph& graph, Rewrites& rewrites)
      : graph_(graph), rewrites_(rewrites), invariant_(invariant_nodes(graph)) {}

  void run() {
    for (Node* node : graph_.node_list()) {
      if (node->op == &ops::quantize) visit(node);
    }
    graph_.erase_dead_nodes();
  }

 private:
  void visit(Node* node) {
    Value* factor = node->operands[kFactor];
    bool has_sums = false;
    const bool is_known =
        factor->type.rank() == 0 && is_invariant(factor) && rewriting::number_everywhere(factor) != 1.0;
    if (!is_known || !is_scalable(node->operands[0], has_sums) || !has_sums || !rewrites_.allow(*node))
      return;
    const Graph::InsertBefore scope(graph_, node);
    Value* one = rewriting::add_number(graph_, 1, DType::kF32);
    replace_all_uses(
        graph_, node->results[0],
        graph_.call(ops::quantize, {scaled(node->operands[0], factor), one, zero_point_of(*node)},
                    node->values));
  }

  bool is_invariant(const Value* value) const { return invariant_.contains(value->producer); }

  // Whether a factor can move to the constants that the value is computed with. `has_sums`: sums of integers
  // are among what it is computed of.
  bool is_scalable(const Value* value, bool& has_sums) const {
    if (is_invariant(value)) return true;
    const Node* node = value->producer;
    if (node == nullptr || value->type.dtype != DType::kF32) return false;
    if (node->op == &ops::dequantize) return is_invariant(node->operands[kFactor]);
    if (!has_one_user(graph_, value)) return false;
    if (node->op == &ops::add || node->op == &ops::subtract)
      return is_scalable(node->operands[0], has_sums) && is_scalable(node->operands[1], has_sums);
    if (node->op != &ops::multiply || !is_invariant(node->operands[1])) return false;
    has_sums = has_sums || is_sum_of_integers(node->operands[0]);
    return true;
  }

  Value* scaled(Value* value, Value* factor) {
    Node* node = value->producer;
    if (is_invariant(value)) return graph_.call(ops::multiply, {value, factor});
    if (node->op == &ops::dequantize)
      return graph_.call(ops::dequantize,
                         {node->operands[0], graph_.call(ops::multiply, {node->operands[kFactor], factor}),
                          zero_point_of(*node)});
    if (node->op == &ops::multiply)
      return graph_.call(ops::multiply,
                         {node->operands[0], graph_.call(ops::multiply, {node->operands[1], factor})});
    return graph_.call(*node->op, {scaled(node->operands[0], factor), scaled(node->operands[1], factor)},
                       node->values);
  }

  Graph& graph_;
  Rewrites& rewrites_;
  std::set<const Node*> invariant_;
};

}  // namespace

void scale_to_quantize(Graph& graph, Rewrites& rewrites) { Scaling(graph, rewrites).run(); }

}  // namespace ingot::core
