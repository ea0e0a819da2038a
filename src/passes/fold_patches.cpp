// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "passes/few_channels.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

// Whether windows lie side by side and cover the image.
bool cuts_patches(const Node& node) {
  const auto convolution = node.attributes<ops::Convolution>();
  const Shape &image = node.operand_type(0).shape, &window = node.operand_type(1).shape,
              &result = node.results[0]->type.shape;
  for (size_t i = 0; i < convolution.stride.size(); ++i) {
    const int64_t step = convolution.stride[i];
    if (step < 2 || window[2 + i] != Dim(step) || convolution.padding[i] != 0 || convolution.dilation[i] != 1)
      return false;
    if (result[2 + i] * step != image[2 + i]) return false;
  }
  return true;
}

// [N, C, H, W] -> [N, C * down * across, H / down, W / across], stored with the channels last: one copy.
Value* patches_as_channels(Graph& graph, Value* image, int64_t down, int64_t across, const Shape& result) {
  const Shape shape = image->type.shape;
  Value* value = graph.call(ops::reshape, {image},
                            ops::NewShape{{shape[0], shape[1], result[2], down, result[3], across}});
  value = graph.call(ops::transpose, {value}, ops::Permutation{{0, 2, 4, 1, 3, 5}});
  value = graph.call(ops::reshape, {value},
                     ops::NewShape{{shape[0], result[2], result[3], shape[1] * (down * across)}});
  return graph.call(ops::transpose, {value}, ops::Permutation{{0, 3, 1, 2}});
}

}  // namespace

Graph fold_patches(Graph graph, const ConvolutionRule& rule, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (!convolves_few_channels(*node) || !rule(*node) || !cuts_patches(*node) || !rewrites.allow(*node))
      continue;
    const auto stride = node->attributes<ops::Convolution>().stride;
    const Graph::InsertBefore scope(graph, node);
    Value* const patches = patches_as_channels(graph, node->operands[0], stride.at(0), stride.at(1),
                                               node->results[0]->type.shape);
    const Dim windows = node->operand_type(1).shape[0];
    Value* const window =
        graph.call(ops::reshape, {node->operands[1]}, ops::NewShape{{windows, patches->type.shape[1], 1, 1}});
    replace_all_uses(graph, node->results[0],
                     graph.call(ops::convolution, {patches, window, node->operands[2]},
                                ops::Convolution{{1, 1}, {0, 0}, {1, 1}, 1}));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
