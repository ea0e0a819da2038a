// SPDX-License-Identifier: Apache-2.0
// Compiles a kernel, runs it and the interpreter on the same random data, and compares.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "loops/kernel.h"
#include "support/cpu_features.h"
#include "tests/backends/storage.h"

namespace ingot::core::cpu::test {

// Targets that this machine can run.
std::vector<CpuFeatures> targets();

using core::test::Check;

// Every target, in one call and in parts at multiples of the grain. Adds gtest failures that show the kernel.
// `operands`, if any, are the values of the first buffers.
void expect_same(const loops::Kernel& kernel, const SymbolValues& symbols = {}, const Check& check = {},
                 const std::vector<Tensor>& operands = {});

// Machine code of a kernel without symbols.
class CompiledKernel {
 public:
  CompiledKernel(const loops::Kernel& kernel, CpuFeatures features);
  ~CompiledKernel();
  int64_t run(const std::vector<Tensor>& buffers) const;  // over the whole work range; returns the status

 private:
  class Implementation;
  std::unique_ptr<Implementation> code_;
};

inline int64_t run_once(const loops::Kernel& kernel, CpuFeatures features,
                        const std::vector<Tensor>& buffers) {
  return CompiledKernel(kernel, features).run(buffers);
}

}  // namespace ingot::core::cpu::test
