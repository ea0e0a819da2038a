// SPDX-License-Identifier: Apache-2.0
// Loop IR as LLVM code, vectorized.
#pragma once

#include <string>

#include "backends/cpu/compile/llvm/code.h"
#include "loops/kernel.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Adds a function to the module: int64_t name(void* const* buffers, const int64_t* symbols, int64_t begin,
// int64_t end, void* scratch) with `symbols` in the order of loops::free_symbols. [begin, end) counts points
// of the parallel loops, flattened; `begin` is a multiple of the grain of plan_lanes, and `scratch` has
// scratch_bytes. Returns 0 or a loops::KernelStatus.
llvm::Function* emit_loops_function(Code& code, const loops::Kernel& kernel, const std::string& name);

// Bytes that the code of emit_loops_function needs for local rows; small rows are on the stack.
Dim scratch_bytes(const loops::Kernel& kernel, CpuFeatures features);

}  // namespace ingot::core::cpu
