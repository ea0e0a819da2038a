// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "ops/convolution.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "passes/replace_all_uses.h"
#include "passes/separate_windows.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

using Sizes = std::vector<int64_t>;

// Padding of the convolution with the flipped window; negative if the transposed one crops more than that.
Sizes turned_padding(const ops::ConvolutionTranspose& convolution, const Shape& weight) {
  Sizes padding;
  for (size_t i = 0; i < convolution.stride.size(); ++i)
    padding.push_back(convolution.dilation[i] * (*weight[i + 2].constant() - 1) - convolution.padding[i]);
  return padding;
}

bool has_constant_weight(const Node& node) {
  return std::ranges::all_of(node.operand_type(1).shape, [](const Dim& dim) { return dim.is_constant(); });
}

bool becomes_convolution(const Node& node, const ops::ConvolutionTranspose& convolution) {
  const Sizes padding = turned_padding(convolution, node.operand_type(1).shape);
  return ops::all_are(convolution.stride, 1) && ops::all_are(convolution.output_padding, 0) &&
         std::ranges::all_of(padding, [](int64_t size) { return size >= 0; });
}

// [C, O / groups, *kernel] -> [groups, O / groups, C / groups, *kernel].
Value* split_groups(Graph& graph, Value* weight, int64_t groups) {
  Shape shape = weight->type.shape;
  shape[0] = Dim(*shape[0].constant() / groups);
  shape.insert(shape.begin(), Dim(groups));
  weight = graph.call(ops::reshape, {weight}, ops::NewShape{shape});
  std::vector<int64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  return graph.call(ops::transpose, {weight}, ops::Permutation{order});
}

Value* turned_convolution(Graph& graph, const Node& node, const ops::ConvolutionTranspose& convolution) {
  const Shape& given = node.operand_type(1).shape;
  Value* weight = split_groups(graph, node.operands[1], convolution.groups);
  Shape shape{given[1] * Dim(convolution.groups), Dim(*given[0].constant() / convolution.groups)};
  shape.insert(shape.end(), given.begin() + 2, given.end());
  weight = graph.call(ops::reshape, {weight}, ops::NewShape{shape});
  ops::Axes spatial;
  for (size_t i = 2; i < shape.size(); ++i) spatial.axes.push_back(static_cast<int64_t>(i));
  weight = graph.call(ops::flip, {weight}, spatial);
  const Sizes padding = turned_padding(convolution, given);
  return graph.call(ops::convolution, {node.operands[0], weight, node.operands[2]},
                    ops::Convolution{convolution.stride, padding, convolution.dilation, convolution.groups});
}

// A convolution with a 1x1 window computes one value per tap and channel: channels are (group, tap, channel).
Value* product_and_fold(Graph& graph, const Node& node, const ops::ConvolutionTranspose& convolution) {
  const Shape& given = node.operand_type(1).shape;
  const size_t spatial = convolution.stride.size();
  int64_t taps = 1;
  Sizes window;
  for (size_t i = 2; i < given.size(); ++i) {
    window.push_back(*given[i].constant());
    taps *= window.back();
  }
  const int64_t groups = convolution.groups, inputs = *given[0].constant() / groups,
                outputs = *given[1].constant();
  Value* weight = graph.call(ops::reshape, {split_groups(graph, node.operands[1], groups)},
                             ops::NewShape{{groups, outputs, inputs, taps}});
  weight = graph.call(ops::transpose, {weight}, ops::Permutation{{0, 3, 1, 2}});
  Shape shape{groups * taps * outputs, inputs};
  shape.insert(shape.end(), spatial, Dim(1));
  weight = graph.call(ops::reshape, {weight}, ops::NewShape{shape});
  const Sizes ones(spatial, 1), zeros(spatial, 0);
  Value* windows = graph.call(ops::convolution, {node.operands[0], weight, nullptr},
                              ops::Convolution{ones, zeros, ones, groups});
  const Shape& result = node.results[0]->type.shape;
  return graph.call(ops::fold, {windows, node.operands[2]},
                    ops::Fold{window, convolution.stride, convolution.padding,
                              Shape(result.begin() + 2, result.end()), groups});
}

Value* expanded(Graph& graph, const Node& node, bool turns) {
  const auto convolution = node.attributes<ops::ConvolutionTranspose>();
  if (turns) return turned_convolution(graph, node, convolution);
  if (has_separate_windows(node))
    return convolve_windows(graph, node, weight_of_windows(graph, node.operands[1]));
  return product_and_fold(graph, node, convolution);
}

bool has_elements(const Node& node) {
  return std::ranges::none_of(node.operand_type(1).shape, [](const Dim& dim) { return dim == Dim(0); });
}

}  // namespace

Graph expand_transposed_convolutions(Graph graph, const TransposedConvolutionRule& rule, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::convolution_transpose || !has_constant_weight(*node) || !has_elements(*node) ||
        !rule(*node))
      continue;
    const auto convolution = node->attributes<ops::ConvolutionTranspose>();
    const bool turns = becomes_convolution(*node, convolution);
    if ((!turns && !ops::all_are(convolution.dilation, 1)) || !rewrites.allow(*node)) continue;
    Graph::InsertBefore scope(graph, node);
    replace_all_uses(graph, node->results[0], expanded(graph, *node, turns));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
