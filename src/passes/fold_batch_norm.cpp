// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/side.h"
#include "ops/batch_norm.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "passes/one_user.h"
#include "passes/passes.h"
#include "passes/replace_all_uses.h"

namespace ingot::core {
namespace {

enum : size_t { kInput, kMean, kVariance, kScale, kShift };  // operands of batch_norm
enum : size_t { kWeight = 1, kBias = 2 };                    // of convolution and linear

bool is_source_of_init(const Value* value) {
  const Node* node = value->producer;
  return node != nullptr && (node->op == &ops::weight || node->literal != nullptr);
}

// The channels of a linear layer's result are where batch_norm expects them only if it is a matrix.
bool gives_channels(const Node& node) {
  return node.op == &ops::convolution || (node.op == &ops::linear && node.results[0]->type.rank() == 2);
}

bool is_foldable(const Graph& graph, const Node& norm) {
  if (norm.op != &ops::batch_norm) return false;
  const Value* x = norm.operands[kInput];
  const Node* producer = x->producer;
  if (producer == nullptr || !gives_channels(*producer) || !are_on_one_side(norm, *producer) ||
      !has_one_user(graph, x))
    return false;
  const auto is_known = [&](const Value* value) {
    return value == nullptr || (is_source_of_init(value) && value->type.dtype == x->type.dtype);
  };
  return std::ranges::all_of(norm.operands.begin() + 1, norm.operands.end(), is_known) &&
         std::ranges::all_of(producer->operands.begin() + 1, producer->operands.end(), is_known);
}

// scale / sqrt(variance + epsilon), one value per channel.
Value* channel_scale(Graph& graph, const Node& norm) {
  const TensorType& variance = norm.operand_type(kVariance);
  const ops::Full epsilon{norm.attributes<ops::BatchNorm>().epsilon, 0, variance.dtype, {}};
  Value* sum = graph.call(ops::add, {norm.operands[kVariance], graph.call(ops::full, {}, epsilon)});
  Value* inverse = graph.call(ops::reciprocal_square_root, {sum});
  return norm.has_operand(kScale) ? graph.call(ops::multiply, {norm.operands[kScale], inverse}) : inverse;
}

// norm(product + bias) = product * scale + ((bias - mean) * scale + shift).
Value* folded(Graph& graph, const Node& norm) {
  const Node& producer = *norm.operands[kInput]->producer;
  Value* scale = channel_scale(graph, norm);
  Shape by_channel(producer.operand_type(kWeight).rank(), 1);
  by_channel[0] = scale->type.shape[0];
  Value* factor = graph.call(ops::reshape, {scale}, ops::NewShape{by_channel});
  Value* weight = graph.call(ops::multiply, {producer.operands[kWeight], factor});
  Value* centered = producer.has_operand(kBias)
                        ? graph.call(ops::subtract, {producer.operands[kBias], norm.operands[kMean]})
                        : graph.call(ops::negate, {norm.operands[kMean]});
  Value* bias = graph.call(ops::multiply, {centered, scale});
  if (norm.has_operand(kShift)) bias = graph.call(ops::add, {bias, norm.operands[kShift]});
  return graph.call(*producer.op, {producer.operands[0], weight, bias}, producer.values);
}

}  // namespace

Graph fold_batch_norm(Graph graph, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (!is_foldable(graph, *node) || !rewrites.allow(*node)) continue;
    Graph::InsertBefore scope(graph, node);
    replace_all_uses(graph, node->results[0], folded(graph, *node));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
