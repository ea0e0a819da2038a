// SPDX-License-Identifier: Apache-2.0
// Runs a kernel element by element: the oracle of every backend. Math functions are the C library's, computed
// in double for f32 operands and rounded once.
#pragma once

#include <span>

#include "loops/kernel.h"
#include "types/tensor.h"

namespace ingot::core::loops {

enum class KernelStatus : int { kOk = 0, kIndexOutOfRange = 1 };

// `buffers` are the kernel's arguments as dense storage in each buffer's layout (padding included); checks
// every index.
KernelStatus interpret(const Kernel& kernel, std::span<const TensorView> buffers,
                       const SymbolValues& symbols);

// The same for some points of the parallel loops only, each given by its linear position.
KernelStatus interpret_points(const Kernel& kernel, std::span<const TensorView> buffers,
                              const SymbolValues& symbols, std::span<const int64_t> points);

}  // namespace ingot::core::loops
