// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: channels are independent, or only mix within narrow groups. Vectors are along the
// channels of a channels-last image, across groups.
//
//   for each image, row of the result, tile of its pixels, 256 channels (an item)
//     point at the elements of the image rows that the tile's windows reach
//     for each vector of channels
//       for each row of the window, element of the image row, pixel whose window contains it
//         sums[pixel] += element * weight
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "ops/convolution.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// Operands as of convolution; as many channels out as in, in groups of 1, 2, 4 or 8.
bool is_depthwise(std::span<const TensorType> operands, const ops::Convolution& attributes);
// f32, or u8 and i8.
Fit supports_depthwise(std::span<const TensorType> operands, CpuFeatures features);
LayoutRequest depthwise_layouts(std::span<const TensorType> operands, CpuFeatures features);
TemplateKernel plan_depthwise(std::span<const TensorType> operands, const TensorType& result,
                              const ops::Convolution& attributes, int64_t outside,
                              const loops::Kernel& epilogue, const SymbolTable& symbols,
                              const Target& target);

}  // namespace ingot::core::cpu
