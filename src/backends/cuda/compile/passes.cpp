// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/passes.h"

#include "passes/target_passes.h"

namespace ingot::core::cuda {
namespace {

bool runs_on_tensor_cores(const Node& linear) { return is_half(linear.results[0]->type.dtype); }

}  // namespace

std::vector<Pass> own_passes(const Target&) {
  return {
      {.name = "merge_linears",
       .stage = Stage::kLayout,
       .run = [](Graph graph) { return merge_linears(std::move(graph), runs_on_tensor_cores); },
       .minimum_level = 3,
       .why = "before layouts are assigned: what reads the parts decides how they lie"},
  };
}

}  // namespace ingot::core::cuda
