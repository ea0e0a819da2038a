// SPDX-License-Identifier: Apache-2.0
// Compares compiled kernels with their definitions: a wrong kernel is an error of the build.
#pragma once

#include <set>
#include <span>

#include "backends/executor.h"
#include "plan/plan_input.h"

namespace ingot::core {

// Where kernels run.
struct KernelRunner {
  const Executor* executor = nullptr;
  ThreadPool* pool = nullptr;
};

// Runs each kernel binary of the runner's backend that this machine can execute once, for the first of
// `steps` that uses it, at the smallest sizes that `symbols` allow, on random and special values, and
// interprets the same: at all points, or at some if that takes longer than some milliseconds. Adds the number
// of kernels to `verified`. Throws an internal error INGOT-I002 with the kernel's text if a result differs by
// more than the accuracy rule allows, if a NaN or an infinity differs (of kernels that keep them), or if a
// kernel writes outside of its buffers.
void verify_kernels(std::span<const NodeStep> steps, std::span<const Image> images,
                    const SymbolTable& symbols, const KernelRunner& runner, std::set<ImageId>& verified);

}  // namespace ingot::core
