// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/compile/templates/kernel_template.h"

namespace ingot::bench {

struct KernelCase {
  std::string name;
  core::cpu::TemplateKernel plan;
  std::vector<core::TensorType> buffers;
  core::SymbolValues symbols;
  double operations;           // multiplications and additions
  int64_t streamed_bytes = 0;  // where memory is the bound: bytes that must be read
};

// `dtype` of the operands: f32, bf16, or u8 (with weights of i8), which attention has no kernels of.
std::vector<KernelCase> kernel_cases(const core::Target& target, core::DType dtype);

}  // namespace ingot::bench
