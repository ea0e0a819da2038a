// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "ops/scaled_linear.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// ops::scaled_linear with weights of constant size, and blocks of whole vectors of A. Up to a tile of rows
// read the weight as it is stored; with more, each panel is dequantized once.
Fit supports_scaled_linear(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                           CpuFeatures features);
LayoutRequest scaled_linear_layouts(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                                    CpuFeatures features);
TemplateKernel plan_scaled_linear(std::span<const TensorType> operands, const ops::ScaledLinear& form,
                                  const loops::Kernel& epilogue, const SymbolTable& symbols,
                                  const Target& target);

// Whether a weight of these numbers, which a scale per `block` elements of the depth belongs to, has tiles.
bool has_scaled_tiles(DType numbers, int64_t block, CpuFeatures features);

}  // namespace ingot::core::cpu
