// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "passes/one_user.h"
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

// The only reader of a value if it computes element by element, from it and from single numbers.
Node* elementwise_reader(const Graph& graph, const Value* value) {
  if (!has_one_user(graph, value)) return nullptr;
  Node* reader = value->users[0];
  const auto is_number = [](const Value* operand) { return operand->type.rank() == 0; };
  const bool fits = reader->op->traits.has(Trait::kElementwise) && reader->results.size() == 1 &&
                    std::ranges::all_of(reader->operands, [&](const Value* operand) {
                      return operand == value || (operand != nullptr && is_number(operand));
                    });
  return fits ? reader : nullptr;
}

// Replaces the line by its image. What reads it element by element reads the image, so that it can join the
// convolution's kernel.
void put_back(Graph& graph, Value* line, Value* image) {
  Node* reader = elementwise_reader(graph, line);
  if (reader == nullptr) return replace_all_uses(graph, line, as_line(graph, image));
  const Graph::InsertBefore scope(graph, reader);
  std::vector<Value*> operands = reader->operands;
  std::ranges::replace(operands, line, image);
  put_back(graph, reader->results[0], graph.call(*reader->op, std::move(operands), reader->values));
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
    put_back(graph, node->results[0], result);
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
