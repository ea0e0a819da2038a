// SPDX-License-Identifier: Apache-2.0
// softmax(query key^T * scale + mask) value; scores never leave the cache.
#pragma once

#include "backends/cpu/compile/templates/kernel_template.h"
#include "ops/attention.h"

namespace ingot::core::cpu {

// Operands: query, key, value, optional mask; see ops::Attention. Any layouts with the last dim innermost.
// f32; bf16 where its products are fast; f16 and bf16 for few queries, which read keys and values once.
Fit supports_attention(std::span<const TensorType> operands, CpuFeatures features);
// Whether a processor with fast products of bf16 has them for this attention, which has many queries.
bool multiplies_attention_of_bf16(std::span<const TensorType> operands, CpuFeatures features);
LayoutRequest attention_layouts(std::span<const TensorType> operands);
TemplateKernel plan_attention(std::span<const TensorType> operands, const TensorType& result,
                              const ops::Attention& attributes, const loops::Kernel& epilogue,
                              const SymbolTable& symbols, const Target& target);

}  // namespace ingot::core::cpu
