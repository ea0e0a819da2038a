// SPDX-License-Identifier: Apache-2.0
// Loop IR as LLVM code, vectorized.
#pragma once

#include <string>

#include "backends/cpu/compile/llvm/code.h"
#include "backends/cpu/compile/prepare/prepared_kernel.h"

namespace ingot::core::cpu {

// Adds a function to the module: int64_t name(void* const* buffers, const int64_t* symbols, int64_t begin,
// int64_t end, void* scratch), as the launch of the kernel says. [begin, end) counts points of the parallel
// loops, flattened; `begin` is a multiple of the grain. Returns 0 or a loops::KernelStatus.
llvm::Function* emit_loops_function(Code& code, const PreparedKernel& prepared, const std::string& name);

}  // namespace ingot::core::cpu
