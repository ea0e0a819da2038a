// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: each channel has its own window and meets no other. Vectors run along the channels
// of a channels-last image.
#pragma once

#include "backends/cpu/compile/schedule.h"
#include "ops/attributes.h"

namespace ingot::core::cpu {

// Operands as of convolution; as many groups as channels in and out.
bool is_depthwise(std::span<const TensorType> operands, const ops::Convolution& attributes);
LayoutRequest depthwise_layouts(std::span<const TensorType> operands, CpuFeatures features);
ScheduledKernel plan_depthwise(std::span<const TensorType> operands, const TensorType& result,
                               const ops::Convolution& attributes, const loops::Kernel& epilogue,
                               const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
