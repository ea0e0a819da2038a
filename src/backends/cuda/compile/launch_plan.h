// SPDX-License-Identifier: Apache-2.0
// How a kernel is spread over the threads of a GPU: decided from the Loop IR alone, before any code is
// written.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/compile/register_row.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// A *group* of threads works on one point of the parallel loops at a time:
//   for point = group's number; point < parallel extent; point += groups
//     for each stage: the group's threads share its loops, or the reduction of one point of them
// A group is one thread, a warp, or a whole block.
struct LaunchPlan {
  int block = 256;  // threads per block
  int group = 1;    // threads per point: 1, a warp, or `block`
  bool flat =
      false;  // stages are independent elementwise ones: the grid has a point for each of all their loops
  std::vector<int> neighbours;       // by stage of a flat kernel: of neighbours_of
  std::vector<std::string> symbols;  // arguments of the kernel, in order
  Dim points = 1;                    // groups that have work
  Dim row_bytes = 0;                 // per group, of the rows that stages hand on
  bool rows_in_shared = true;        // else in scratch memory, `row_bytes` per group of the grid
  std::optional<RegisterRow> row;    // its threads keep rows in registers instead
};

// `kernel` is ordered for storage, and its functions are expanded. `row`: which of register_rows, if it has
// any.
LaunchPlan plan_launch(const loops::Kernel& kernel, size_t row = 0);

}  // namespace ingot::core::cuda
