// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "support/cpu_features.h"

namespace ingot::core::cpu {

// result[..., n] = bias[n] + sum over k of input[..., k] * weight[n, k]; n and k constant. Operands: input,
// weight, optional bias. f32, with weights of f32, bf16, f16 or i8; all bf16
// with an even k; or u8 with weights of i8, a k in fours and sums in i32, without bias.
Fit supports_linear(std::span<const TensorType> operands, CpuFeatures features);
// As KernelTemplate::tactics.
std::vector<PanelTactic> linear_tactics(std::span<const TensorType> operands, CpuFeatures features);
LayoutRequest linear_layouts(std::span<const TensorType> operands, CpuFeatures features);
TemplateKernel plan_linear(std::span<const TensorType> operands, const loops::Kernel& epilogue,
                           const SymbolTable& symbols, const Target& target, const PanelTactic& tactic);

}  // namespace ingot::core::cpu
