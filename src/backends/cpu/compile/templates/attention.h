// SPDX-License-Identifier: Apache-2.0
// softmax(query key^T * scale + mask) value; scores never leave the cache.
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "ops/attention.h"

namespace ingot::core::cpu {

// Operands: query, key, value, optional mask; see ops::Attention. Any layouts with the last dim innermost.
Fit supports_attention(std::span<const TensorType> operands);
LayoutRequest attention_layouts(std::span<const TensorType> operands);
TemplateKernel plan_attention(std::span<const TensorType> operands, const TensorType& result,
                              const ops::Attention& attributes, const loops::Kernel& epilogue,
                              const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
