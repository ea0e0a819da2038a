// SPDX-License-Identifier: Apache-2.0
// Compiles a kernel, runs it beside the interpreter on the same random data, and compares.
#pragma once

#include <string>
#include <vector>

#include "loops/kernel.h"
#include "support/cpu_features.h"
#include "types/tensor.h"

namespace ingot::core::cpu::test {

// Targets that this machine can run.
std::vector<CpuFeatures> targets();

struct Check {
  double relative = 1e-6;     // tolerance of floating-point results
  double low = -2, high = 2;  // of random inputs; integers inclusive
  uint64_t seed = 1;
};

// Every target, in one call and in parts at multiples of the grain. Adds gtest failures that show the kernel.
// `operands`, if any, are the values of the first buffers.
void expect_same(const loops::Kernel& kernel, const SymbolValues& symbols = {}, const Check& check = {},
                 const std::vector<Tensor>& operands = {});

}  // namespace ingot::core::cpu::test
