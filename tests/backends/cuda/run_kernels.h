// SPDX-License-Identifier: Apache-2.0
// Kernels compiled by NVRTC and run on this machine's GPU, beside the interpreter.
#pragma once

#include <string>
#include <vector>

#include "backends/cuda/compile/kernel_text.h"
#include "backends/cuda/compile/nvrtc.h"
#include "tests/backends/cuda/gpu.h"

namespace ingot::core::cuda::test {

// The compiler, from the file that INGOT_NVRTC names or where the system finds it; null if there is none.
const Nvrtc* nvrtc();
// Null if there is none.
Gpu* gpu();

struct Case {
  loops::Kernel kernel;
  SymbolValues symbols;
  std::vector<Tensor> operands;  // of the first buffers; the others are random
  KernelOptions options = {};
  KernelText text = {};  // filled by write_all
};

// One translation unit with the kernels of all cases.
std::string write_all(std::vector<Case>& cases);

// Adds gtest failures that show the kernel. Division, roots and fused multiply-adds are correctly rounded:
// what differs is the order of sums.
void expect_same(const Case& c, const Gpu::Module& module,
                 const core::test::Check& check = {.relative = 1e-5});

// Writes, compiles, runs and compares; only compiles, for an old and a new architecture, where there is no
// GPU.
void expect_all_same(std::vector<Case> cases, const core::test::Check& check = {.relative = 1e-5});

}  // namespace ingot::core::cuda::test
