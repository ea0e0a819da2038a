// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of u8 by i8, with sums in i32: four rows of the window are multiplied by one
// instruction (VNNI), for as many channels as a register has sums.
//
//   for each four rows of the window, element of the image row
//     interleave the four rows' bytes of 64 channels: four registers of quads
//     for each pixel whose window contains the element
//       sums[pixel] += quads * quads of the weights
//
// Interleaving keeps bytes in their parts of 16 channels: register v has channels 4 v to 4 v + 3 of each
// part. The weights lie in the same order, and sums are stored part by part.
#pragma once

#include "backends/cpu/compile/templates/depthwise_kernel.h"

namespace ingot::core::cpu {

// Images of two dims, and groups of one channel.
Fit supports_depthwise_bytes(std::span<const TensorType> operands, CpuFeatures features);
// The weight's layout.
Layout byte_window_layout(int64_t channels);
// Fills in what depends on the kernel.
void plan_bytes(DepthwiseProblem& problem);
Image emit_depthwise_bytes(const DepthwiseProblem& problem, CpuFeatures features,
                           const std::vector<std::string>& symbols);

}  // namespace ingot::core::cpu
