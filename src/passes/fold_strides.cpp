// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "passes/few_channels.h"
#include "passes/hoist.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kFoldedRank = 4;  // [N, C, H, W] and [K, C, H, W]

// The same convolution by steps of 1 over an image whose pixels are squares of `step` x `step` pixels.
struct FoldedStrides {
  int64_t step = 1, channels = 0;     // of a folded pixel, without and
  int64_t padded_channels = 0;        // with zeros
  int64_t taps[2] = {};               // of folded pixels, along y and x
  int64_t low[2] = {}, high[2] = {};  // zeros around the image
};

// nullopt if more than half of the numbers would be zeros, or something reads beyond constant sizes.
std::optional<FoldedStrides> folded_strides(const Node& node, int64_t multiple) {
  const auto convolution = node.attributes<ops::Convolution>();
  const Shape &image = node.operand_type(0).shape, &window = node.operand_type(1).shape,
              &result = node.results[0]->type.shape;
  FoldedStrides folded{.step = convolution.stride[0]};
  for (size_t i = 0; i < 2; ++i) {
    const auto taps = window[2 + i].constant(), extent = image[2 + i].constant();
    if (!taps || !extent || convolution.stride[i] != folded.step || convolution.dilation[i] != 1)
      return std::nullopt;
    folded.taps[i] = (*taps + folded.step - 1) / folded.step;
    folded.low[i] = convolution.padding[i];
    folded.high[i] = folded.step * (*result[2 + i].constant() - 1 + folded.taps[i]) - *extent - folded.low[i];
    if (folded.taps[i] < 2 || folded.high[i] < 0) return std::nullopt;
  }
  folded.channels = *image[1].constant() * folded.step * folded.step;
  folded.padded_channels = folded.channels;
  while (folded.padded_channels * folded.taps[1] % multiple != 0) ++folded.padded_channels;
  if (folded.step < 2 || folded.padded_channels >= 2 * folded.channels) return std::nullopt;
  return folded;
}

Value* padded(Graph& graph, Value* value, Shape low, Shape high) {
  return graph.call(ops::pad, {value}, ops::Pad{.low = std::move(low), .high = std::move(high)});
}

// The pixels at `phase` of each square, along the plane's dim i.
Value* phase_of(Graph& graph, Value* value, size_t i, int64_t phase, int64_t step) {
  const size_t axis = 2 + i;
  return graph.call(
      ops::slice, {value},
      ops::Slice{
          .axis = static_cast<int64_t>(axis), .start = phase, .end = value->type.shape[axis], .step = step});
}

// [A, C, H, W] -> [A, step * step * C (and zeros), H / step, W / step]: slices, which one kernel reads at
// once.
Value* squares_as_channels(Graph& graph, Value* value, const FoldedStrides& folded) {
  std::vector<Value*> phases;
  for (int64_t y = 0; y < folded.step; ++y) {
    Value* const rows = phase_of(graph, value, 0, y, folded.step);
    for (int64_t x = 0; x < folded.step; ++x) phases.push_back(phase_of(graph, rows, 1, x, folded.step));
  }
  value = graph.call(ops::concat, phases, ops::Axis{1});
  return padded(graph, value, Shape(kFoldedRank, 0), {0, folded.padded_channels - folded.channels, 0, 0});
}

Value* fold(Graph& graph, const Node& node, const FoldedStrides& folded) {
  const Shape window = node.operand_type(1).shape;
  Value* image = padded(graph, node.operands[0], {0, 0, folded.low[0], folded.low[1]},
                        {0, 0, folded.high[0], folded.high[1]});
  Value* weight =
      padded(graph, node.operands[1], Shape(kFoldedRank, 0),
             {0, 0, folded.step * folded.taps[0] - window[2], folded.step * folded.taps[1] - window[3]});
  image = squares_as_channels(graph, image, folded);
  weight = squares_as_channels(graph, weight, folded);
  return graph.call(ops::convolution, {image, weight, node.operands[2]},
                    ops::Convolution{{1, 1}, {0, 0}, {1, 1}, 1});
}

}  // namespace

Graph fold_strides(Graph graph, const WindowRowRule& rule, Rewrites& rewrites) {
  const std::set<const Node*> invariant = invariant_nodes(graph);
  for (Node* node : graph.node_list()) {
    if (!convolves_few_channels(*node) || !invariant.contains(node->operands[1]->producer)) continue;
    const int64_t multiple = rule(*node);
    if (multiple == 0) continue;
    const auto folded = folded_strides(*node, multiple);
    if (!folded || !rewrites.allow(*node)) continue;
    const Graph::InsertBefore scope(graph, node);
    replace_all_uses(graph, node->results[0], fold(graph, *node, *folded));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
