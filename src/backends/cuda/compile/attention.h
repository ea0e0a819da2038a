// SPDX-License-Identifier: Apache-2.0
// Attention of halves by tensor cores, in one kernel: no scores in memory.
#pragma once

#include <string>
#include <vector>

#include "backends/backend.h"

namespace ingot::core::cuda {

struct AttentionText {
  int threads = 128;
  Dim blocks = 1;  // of query rows, in all batches
  std::vector<std::string> symbols;
  int64_t shared_bytes = 0;
  std::string text;  // of the kernel, without the prelude; its buffers are the node's operands and its result
};

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_attention(const Node& node);

// Operands whose last dim is innermost stay as they are.
LayoutRequest attention_layouts(const Node& node);

AttentionText write_attention(const Node& node, const SymbolTable& symbols);

}  // namespace ingot::core::cuda
