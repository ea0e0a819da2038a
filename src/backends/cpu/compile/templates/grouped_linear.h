// SPDX-License-Identifier: Apache-2.0
// The products of a mixture of experts: rows that are sorted by group, each with the weight of its group.
//
//   the work items are panels of NR columns; for the items of a call:
//     for each group                              (its rows follow from the data)
//       for each block of its rows
//         for each panel of the call              (prepacked by the init program: contiguous, K x NR)
//           (weights narrower than x, and more rows than a tile: convert the panel)
//           for each MR rows of the block: row pointers; microkernel over K; epilogue
//     for the rows behind all groups: epilogue on zeros
//
// Each thread visits all groups, so that the work is divided evenly whatever the router decided.
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Operands: x [S, K], weights [G, N, K] and ends [G] of ops::grouped_linear, G, N and K constant. f32, with
// weights of f32, bf16, f16 or i8; or all bf16 with an even K.
Fit supports_grouped_linear(std::span<const TensorType> operands, CpuFeatures features);
LayoutRequest grouped_linear_layouts(std::span<const TensorType> operands, CpuFeatures features);
TemplateKernel plan_grouped_linear(std::span<const TensorType> operands, const loops::Kernel& epilogue,
                                   const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
