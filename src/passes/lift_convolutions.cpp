// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kLineRank = 3;  // [N, C, L]

Value* transposed(Graph& graph, Value* value, std::vector<int64_t> order) {
  return graph.call(ops::transpose, {value}, ops::Permutation{std::move(order)});
}

// [N, C, L] -> [N, C, 1, L], by way of the order in which images are stored with their channels last.
Value* as_image(Graph& graph, Value* line) {
  const Shape& shape = line->type.shape;
  Value* value = transposed(graph, line, {0, 2, 1});
  value = graph.call(ops::reshape, {value}, ops::NewShape{{shape[0], Dim(1), shape[2], shape[1]}});
  return transposed(graph, value, {0, 3, 1, 2});
}

Value* as_line(Graph& graph, Value* image) {
  const Shape& shape = image->type.shape;
  Value* value = transposed(graph, image, {0, 2, 3, 1});
  value = graph.call(ops::reshape, {value}, ops::NewShape{{shape[0], shape[3], shape[1]}});
  return transposed(graph, value, {0, 2, 1});
}

std::vector<int64_t> behind(int64_t first, const std::vector<int64_t>& rest) { return {first, rest.at(0)}; }

}  // namespace

Graph lift_convolutions(Graph graph, const ConvolutionRule& rule, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::convolution || node->operand_type(0).rank() != kLineRank || !rule(*node) ||
        !rewrites.allow(*node))
      continue;
    const auto line = node->attributes<ops::Convolution>();
    const Graph::InsertBefore scope(graph, node);
    Value* result = graph.call(
        ops::convolution,
        {as_image(graph, node->operands[0]), as_image(graph, node->operands[1]), node->operands[2]},
        ops::Convolution{behind(1, line.stride), behind(0, line.padding), behind(1, line.dilation),
                         line.groups});
    replace_all_uses(graph, node->results[0], as_line(graph, result));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
