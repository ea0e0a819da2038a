// SPDX-License-Identifier: Apache-2.0
// Attention of f16, bf16 and f32 by tensor cores, in one kernel: no scores in memory.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/compile/next_start.h"
#include "backends/cuda/compile/template_text.h"

namespace ingot::core::cuda {

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_attention(const Node& node);

// Operands whose last dim is innermost keep their layout.
LayoutRequest attention_layouts(const Node& node);

struct AttentionSite {
  const Node& node;
  bool rounds_to_tf32;  // f32 operands, to 11 significant bits
  bool keys_are_old;    // keys and values of cached_attention, which no step before writes
  std::string_view architecture;
  const SymbolTable& symbols;
};

// Its next kernel starts at once or at the end.
struct AttentionTactic {
  int warp_rows = 1;       // warps of a block with 16 queries each; the others share the keys
  int splits = 1;          // blocks of a cluster, which share the keys
  int groups = 0;          // instead of the two: groups of four warps with 64 queries each (sm_90a, halves),
  int key_groups = 1;      // and so many times that, which share the keys,
  int part_keys = 64;      // so many at a time;
  int row_tiles = 1;       // so many times 64 queries, one after another, with all keys in shared memory
  int register_warps = 0;  // instead of warp_rows: warps with keys in registers (halves, few queries),
  int warp_keys = 0;       // so many at a time, a multiple of 16
  NextStart next_start = NextStart::kAtOnce;
};

// Its buffers are the node's operands and its result.
TemplateKernel write_attention(const AttentionSite& site, const AttentionTactic& tactic);

// The predicted fastest first; never empty.
std::vector<AttentionTactic> rank_tactics(const AttentionSite& site);

}  // namespace ingot::core::cuda
