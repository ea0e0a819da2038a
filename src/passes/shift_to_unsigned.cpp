// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "passes/converted_values.h"
#include "passes/integer_constant.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

Value* multiplied(Graph& graph, const Node& node, Value* x) {
  if (node.op != &ops::integer_convolution) return graph.call(*node.op, {x, node.operands[1]});
  auto convolution = node.attributes<ops::IntegerConvolution>();
  convolution.outside += kByteShift;
  return graph.call(ops::integer_convolution, {x, node.operands[1]}, convolution);
}

// The sum of each column's weights, in a shape that broadcasts to the result.
Value* sums_of_columns(Graph& graph, const Node& node) {
  const auto rank = static_cast<int64_t>(node.operand_type(1).rank());
  Value* wide = converted(graph, node.operands[1], DType::kI32);
  if (node.op == &ops::integer_matmul) return graph.call(ops::sum, {wide}, ops::Reduce{{rank - 2}, true});
  std::vector<int64_t> depth(static_cast<size_t>(rank - 1));
  std::iota(depth.begin(), depth.end(), 1);
  Value* sums = graph.call(ops::sum, {wide}, ops::Reduce{std::move(depth), false});
  if (node.op == &ops::integer_linear) return sums;
  Shape shape(node.results[0]->type.rank() - 1, 1);
  shape[0] = sums->type.shape[0];
  return graph.call(ops::reshape, {sums}, ops::NewShape{shape});
}

// (x + 128) w^T - 128 sum(w): the same integers.
Value* shifted(Graph& graph, const Node& node) {
  Value* shift = integer_constant(graph, kByteShift);
  Value* moved = converted(
      graph, graph.call(ops::add, {converted(graph, node.operands[0], DType::kI32), shift}), DType::kU8);
  Value* sums = sums_of_columns(graph, node);
  Value* product = multiplied(graph, node, moved);
  return graph.call(ops::subtract, {product, graph.call(ops::multiply, {sums, shift})});
}

}  // namespace

Graph shift_to_unsigned(Graph graph, const IntegerRule& rule, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    const bool multiplies = node->op == &ops::integer_linear || node->op == &ops::integer_matmul ||
                            node->op == &ops::integer_convolution;
    if (!multiplies || node->operand_type(0).dtype != DType::kI8 || !rule(*node) || !rewrites.allow(*node))
      continue;
    const Graph::InsertBefore scope(graph, node);
    replace_all_uses(graph, node->results[0], shifted(graph, *node));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
