// SPDX-License-Identifier: Apache-2.0
// Products of two activations: nothing is prepacked, so panels of B are packed in each work item.
//
//   for each batch, panel of NR columns of B, block of kItemRows rows of A     (one work item)
//     pack the panel: [K][NR], transposed in registers if B is column-major
//     for each MR rows of the block
//       point at the rows of A; microkernel over K; epilogue
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Operands: a [*, M, K], b [*, K, N], f32, or bf16 with an even constant K; batch dims broadcast; a with K
// innermost in memory, b with K or N.
Fit supports_matmul(std::span<const TensorType> operands, CpuFeatures features);
LayoutRequest matmul_layouts(std::span<const TensorType> operands);
TemplateKernel plan_matmul(std::span<const TensorType> operands, const TensorType& result,
                           const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
