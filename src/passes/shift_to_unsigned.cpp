// SPDX-License-Identifier: Apache-2.0
#include "ops/ops.h"
#include "ops/reduce.h"
#include "passes/converted_values.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr int64_t kByteShift = 128;

Value* integer(Graph& graph, int64_t value) {
  Tensor tensor = make_tensor(DType::kI32, {});
  write_integer(tensor.view(), {}, value);
  return graph.add_constant(std::move(tensor));
}

// (x + 128) w^T - 128 sum(w): the same integers.
Value* shifted(Graph& graph, const Node& linear) {
  Value *x = linear.operands[0], *weight = linear.operands[1], *shift = integer(graph, kByteShift);
  Value* moved =
      converted(graph, graph.call(ops::add, {converted(graph, x, DType::kI32), shift}), DType::kU8);
  Value* sums = graph.call(ops::sum, {converted(graph, weight, DType::kI32)}, ops::Reduce{{1}, false});
  Value* product = graph.call(ops::integer_linear, {moved, weight});
  return graph.call(ops::subtract, {product, graph.call(ops::multiply, {sums, shift})});
}

}  // namespace

Graph shift_to_unsigned(Graph graph, const IntegerRule& rule) {
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::integer_linear || node->operand_type(0).dtype != DType::kI8 || !rule(*node))
      continue;
    const Graph::InsertBefore scope(graph, node);
    replace_all_uses(graph, node->results[0], shifted(graph, *node));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
