// SPDX-License-Identifier: Apache-2.0
// Convolution as a product (implicit GEMM): rows are the result's pixels, columns its channels, and A is read
// from the image in place.
//
// Images are channels-last ([N, spatial..., C] in memory), weights are in panels of channels, with the taps
// of the window in order and the input channels innermost.
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "ops/convolution.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Operands: input [N, C, spatial...], weight [O, C/groups, window...], optional bias [O]. 1 to 3 spatial
// dims. f32; with one group also bf16 and an even number of channels, or u8, i8 weights and channels in
// fours; u8 also depthwise.
Fit supports_convolution(std::span<const TensorType> operands, const ops::Convolution& attributes,
                         CpuFeatures features);
// As KernelTemplate::tactics.
std::vector<PanelTactic> convolution_tactics(std::span<const TensorType> operands,
                                             const ops::Convolution& attributes, CpuFeatures features);
LayoutRequest convolution_layouts(std::span<const TensorType> operands, const ops::Convolution& attributes,
                                  CpuFeatures features);
// `outside`: the number that pixels outside of the image have; 0 for floats.
TemplateKernel plan_convolution(std::span<const TensorType> operands, const TensorType& result,
                                const ops::Convolution& attributes, int64_t outside,
                                const loops::Kernel& epilogue, const SymbolTable& symbols,
                                const Target& target, const PanelTactic& tactic);

}  // namespace ingot::core::cpu
