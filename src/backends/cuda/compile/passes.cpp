// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/passes.h"

#include "ops/convolution.h"
#include "passes/target_passes.h"

namespace ingot::core::cuda {
namespace {

bool is_of_halves(const Node& node) { return is_half(node.results[0]->type.dtype); }

// The template copies eight at a time.
int64_t channel_multiple(const Node& convolution) {
  constexpr int64_t kChunk = 8;
  constexpr size_t kImageRank = 4;
  const bool suits = is_of_halves(convolution) && convolution.results[0]->type.rank() == kImageRank &&
                     convolution.attributes<ops::Convolution>().groups == 1;
  return suits ? kChunk : 1;
}

}  // namespace

std::vector<Pass> own_passes(const Target&) {
  return {
      {.name = "pad_channels",
       .stage = core::Stage::kLayout,
       .run = [](Graph graph) { return pad_channels(std::move(graph), channel_multiple); },
       .minimum_level = 3,
       .why = "before layouts are assigned: what is padded is stored channels last at once"},
      {.name = "merge_linears",
       .stage = core::Stage::kLayout,
       .run = [](Graph graph) { return merge_linears(std::move(graph), is_of_halves); },
       .minimum_level = 3,
       .why = "before layouts are assigned: what reads the parts decides how they lie"},
  };
}

}  // namespace ingot::core::cuda
