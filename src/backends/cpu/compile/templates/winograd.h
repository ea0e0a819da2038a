// SPDX-License-Identifier: Apache-2.0
// The product of winograd_convolution: 16 products of tiles by channels, whose accumulators become 2x2 pixels
// each while they are in the cache.
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Whether the saved products are worth the transforms and the larger weights.
bool is_faster_by_winograd(const Node& convolution, CpuFeatures features);

// Operands, all f32: transformed image [16, tiles, C], transformed weight [16, K, C] in panels of K, image
// [N, C, h, w] and window [K, C, 3, 3], optional bias [K]. The result is [N, K, H, W], channels-last, H and W
// constant.
Fit supports_winograd(std::span<const TensorType> operands, const TensorType& result);
LayoutRequest winograd_layouts(std::span<const TensorType> operands, CpuFeatures features);
TemplateKernel plan_winograd(std::span<const TensorType> operands, const TensorType& result,
                             const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
