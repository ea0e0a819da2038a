// SPDX-License-Identifier: Apache-2.0
// A generic kernel on its way from Loop IR to code: all that is decided before code is emitted, once.
#pragma once

#include <vector>

#include "backends/cpu/compile/prepare/lane_plan.h"
#include "backends/cpu/kernel_abi.h"
#include "loops/kernel.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Where each local row is, from the start of the rows' memory.
struct RowPlan {
  std::vector<Dim> offsets;  // by stage, in bytes; a multiple of 64
  Dim bytes = 0;
  bool on_stack = true;  // else in the scratch memory of the launch
};

struct PreparedKernel {
  CpuFeatures features;
  loops::Kernel kernel;  // functions are not expanded yet
  LanePlan lanes;
  std::vector<std::vector<int>> groups;  // stages that run in one loop, in order; each stage is in one
  RowPlan rows;
  bool whole_range = false;  // each call computes all points: rows need no limits of their own
};

// Keeps the order of the parallel loops.
PreparedKernel prepare_in_order(loops::Kernel kernel, CpuFeatures features);
// Orders them for the storage of the buffers first.
PreparedKernel prepare(const loops::Kernel& kernel, CpuFeatures features);

// Work items are the points of the parallel loops.
KernelLaunch launch_of(const PreparedKernel& prepared);

}  // namespace ingot::core::cpu
