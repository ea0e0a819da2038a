// SPDX-License-Identifier: Apache-2.0
// Generic kernels: any Loop IR as machine code.
#pragma once

#include "backends/cpu/kernel_abi.h"
#include "engine/program.h"
#include "loops/kernel.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Its work items are the points of the parallel loops.
KernelLaunch plan_launch(const loops::Kernel& kernel, CpuFeatures features);
Image compile_kernel(const loops::Kernel& kernel, CpuFeatures features);

}  // namespace ingot::core::cpu
