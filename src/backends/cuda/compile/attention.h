// SPDX-License-Identifier: Apache-2.0
// Attention of f16, bf16 and f32 by tensor cores, in one kernel: no scores in memory.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/compile/template_text.h"

namespace ingot::core::cuda {

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_attention(const Node& node);

// Operands whose last dim is innermost keep their layout.
LayoutRequest attention_layouts(const Node& node);

struct AttentionSite {
  const Node& node;
  bool rounds_to_tf32;  // f32 operands, to 11 significant bits
  std::string_view architecture;
  const SymbolTable& symbols;
};

// Its buffers are the node's operands and its result.
TemplateKernel write_attention(const AttentionSite& site);

}  // namespace ingot::core::cuda
