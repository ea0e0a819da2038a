// SPDX-License-Identifier: Apache-2.0
// Generic kernels: any Loop IR as machine code.
#pragma once

#include <string>
#include <vector>

#include "engine/program.h"
#include "loops/kernel.h"

namespace ingot::core::cpu {

// How the executor has to call the code of a kernel.
struct KernelCallPlan {
  std::vector<std::string> symbols;  // arguments, in order
  Dim work_items = 1;                // points of the parallel loops
  int64_t grain = 1;
  int64_t item_cost = 0;  // rough nanoseconds of an item, rounded down
  Dim scratch_bytes = 0;  // a thread
};

KernelCallPlan plan_call(const loops::Kernel& kernel, CpuFeatures features);
Image compile_kernel(const loops::Kernel& kernel, CpuFeatures features);

}  // namespace ingot::core::cpu
