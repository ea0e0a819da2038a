// SPDX-License-Identifier: Apache-2.0
// Attention of f16, bf16 and f32 by tensor cores, in one kernel: no scores in memory.
#pragma once

#include "backends/backend.h"
#include "backends/cuda/compile/next_start.h"
#include "backends/cuda/compile/product_prologue.h"
#include "backends/cuda/compile/template_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

// Whether the template computes `node` with the layouts that it has.
bool is_tensor_core_attention(const Node& node);

// Whether queries and new rows are so few that the kernel has keys and values in registers.
bool has_keys_in_registers(const Node& node);
// Operands of such an attention that its kernel may compute: queries, and new keys and values.
std::vector<size_t> computable_rows(const Node& node);
// Whether each block may compute these by `producer`, which is elementwise, and what comes before it, instead
// of reading what a kernel of its own has stored.
FusionAnswer may_compute_rows_of_attention(const Node& node, const Node& producer);

// Operands whose last dim is innermost keep their layout.
LayoutRequest attention_layouts(const Node& node);

struct AttentionSite {
  const Node& node;
  bool rounds_to_tf32;   // f32 operands, to 11 significant bits
  bool exact_functions;  // in what is computed of operands
  bool keys_are_old;     // keys and values of cached_attention, which no step before writes
  std::string_view architecture;
  const SymbolTable& symbols;
  // Operands that each block computes (may_compute_rows_of_attention), in ascending order, and the kernel
  // that does: a stage for each of them.
  std::vector<size_t> computed = {};
  std::optional<loops::Kernel> prologue = {};
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

std::string name(const AttentionTactic& tactic);

// Its buffers are the node's operands but those that are computed, its result, and what the prologue reads.
TemplateKernel write_attention(const AttentionSite& site, const AttentionTactic& tactic);

// The predicted fastest first; never empty.
std::vector<AttentionTactic> rank_tactics(const AttentionSite& site);

}  // namespace ingot::core::cuda
