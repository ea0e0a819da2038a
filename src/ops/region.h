// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "ir/graph.h"
#include "loops/kernel.h"

namespace ingot::core {

// One kernel that computes several nodes, and the value that each of its buffers holds.
struct RegionKernel {
  loops::Kernel kernel;
  std::vector<const Value*> buffers;
};

// Lowers nodes (in execution order) and composes them: elementwise kernels are computed where they are read;
// nodes that follow a reduction index by index join its stores. Values of `outputs` are stored, all others
// stay inside. `nodes` may contain at most one node that is not elementwise. Buffer layouts are those of the
// values. What is written in place is a buffer also if nothing reads it. Several outputs are computed
// independently of each other, each by kernels that `stores_alone`.
RegionKernel compose_region(std::span<const Node* const> nodes, std::span<const Value* const> outputs);

// The same kernel with buffer `position` moved to the front.
RegionKernel move_buffer_first(RegionKernel region, int position);

}  // namespace ingot::core
