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

std::vector<KernelCase> kernel_cases(const core::Target& target);

}  // namespace ingot::bench
