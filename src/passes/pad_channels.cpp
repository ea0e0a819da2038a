// SPDX-License-Identifier: Apache-2.0
#include "ops/concat.h"
#include "ops/convolution.h"
#include "ops/ops.h"
#include "passes/hoist.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kChannels = 1;  // of images [N, C, ...] and windows [K, C, ...]

Value* padded(Graph& graph, Value* value, int64_t more) {
  const std::vector<Dim> none(value->type.rank(), 0);
  ops::Pad pad{.low = none, .high = none};
  pad.high[kChannels] = more;
  return graph.call(ops::pad, {value}, pad);
}

}  // namespace

Graph pad_channels(Graph graph, const ChannelRule& rule, Rewrites& rewrites) {
  const std::set<const Node*> invariant = invariant_nodes(graph);
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::convolution || !invariant.contains(node->operands[1]->producer)) continue;
    const auto channels = node->operand_type(0).shape[kChannels].constant();
    const int64_t multiple = rule(*node);
    if (!channels || *channels % multiple == 0 || !rewrites.allow(*node)) continue;
    const Graph::InsertBefore scope(graph, node);
    const int64_t more = multiple - *channels % multiple;
    std::vector<Value*> operands = node->operands;
    for (Value** operand : {&operands[0], &operands[1]}) *operand = padded(graph, *operand, more);
    replace_all_uses(graph, node->results[0],
                     graph.call(ops::convolution, operands, node->attributes<ops::Convolution>()));
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
