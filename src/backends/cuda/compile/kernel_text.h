// SPDX-License-Identifier: Apache-2.0
// Any Loop IR kernel as CUDA C++.
#pragma once

#include <span>
#include <string>

#include "backends/cuda/compile/launch_plan.h"
#include "backends/cuda/compile/next_start.h"

namespace ingot::core::cuda {

struct KernelText {
  LaunchPlan plan;
  std::string entry;
  // The kernel's arguments: one pointer per buffer, one i64 per symbol of the plan, a pointer to scratch
  // memory (null if rows are in shared memory), and a pointer to an i32 status, which becomes 1 if an index
  // read from data was out of range.
  std::string text;
};

struct KernelOptions {
  NextStart next_start = NextStart::kAtOnce;
  size_t row = 0;                 // of register_rows
  bool exact_functions = false;   // else those of halves (half_functions.h)
  std::vector<bool> are_weights;  // by buffer: it exists before the program runs; none, if empty
};

// `kernel` as operators lower it; `entry` becomes its identifier. UnsupportedError INGOT-N602 for
// four-bit dtypes.
KernelText write_kernel(const loops::Kernel& kernel, const std::string& entry,
                        const KernelOptions& options = {});

// Self-contained source of all of these kernels: a few large translation units compile faster than many small
// ones.
std::string translation_unit(std::span<const KernelText> kernels);

}  // namespace ingot::core::cuda
