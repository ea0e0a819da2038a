// SPDX-License-Identifier: Apache-2.0
// Attention of halves by tensor cores, in one kernel: no scores in memory.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/compile/template_text.h"

namespace ingot::core::cuda {

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_attention(const Node& node);

// Operands whose last dim is innermost stay as they are.
LayoutRequest attention_layouts(const Node& node);

// Its buffers are the node's operands and its result.
TemplateKernel write_attention(const Node& node, const SymbolTable& symbols, std::string_view architecture);

}  // namespace ingot::core::cuda
