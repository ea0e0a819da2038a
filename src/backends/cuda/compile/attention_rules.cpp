// SPDX-License-Identifier: Apache-2.0
// Which attention the template computes, with which layouts, and how.
#include <algorithm>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/attention_tile.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kFragmentBytes = 32, kWidestBytes = 512;               // of a row
constexpr int kMostSplits = 8;                                           // blocks of a cluster
constexpr int64_t kManyBlocks = 110;                                     // enough to fill most of a GPU
constexpr int64_t kWidestOfGroups = 128;                                 // of keys and values, in registers
constexpr int64_t kMostQueries = 4, kLeastWidth = 32, kMostWidth = 256;  // without tensor cores

bool has_fragments(const TensorType& type) {
  const auto width = type.shape.back().constant();
  const int64_t bytes = width.value_or(0) * bit_width(type.dtype) / 8;
  return bytes > 0 && bytes % kFragmentBytes == 0 && bytes <= kWidestBytes;
}

bool is_mask(const TensorType& type) {
  return type.layout.is_permutation() && (type.dtype == DType::kBool || is_floating(type.dtype)) &&
         bit_width(type.dtype) >= 8;
}

// Whether the parts of so many groups of warps, two each or all keys, fit into shared memory.
bool may_share_keys(const Node& node, const AttentionShape& shape, int key_groups) {
  constexpr int kMostWithTwo = 2;
  const bool is_narrow = *node.operand_type(0).shape.back().constant() <= kGroupQueries &&
                         *node.operand_type(2).shape.back().constant() <= kGroupQueries;
  const auto keys = shape.keys.constant();
  const bool is_all = keys && *keys <= int64_t{key_groups} * kKeysOfPart;
  return is_narrow && (is_all ? *keys > (key_groups - 1) * kKeysOfPart : key_groups <= kMostWithTwo);
}

// The sizes that decide, at typical sizes of symbols.
class TacticRanking {
 public:
  explicit TacticRanking(const AttentionSite& site)
      : node_(site.node), limits_(limits_of(site.architecture)), shape_(attention_shape(site.node)) {
    const TemplateText text(site.node, {}, site.symbols);
    keys_ = text.typical(shape_.keys);
    queries_ = text.typical(shape_.queries);
    batch_ = text.typical(shape_.batch);
  }

  // Groups of warps, or 64 queries per block, if that fills the GPU; otherwise warps, and blocks if there are
  // few of them, share the keys.
  std::vector<AttentionTactic> rank() const {
    const AttentionTactic best = best_of_warps();
    std::vector<AttentionTactic> tactics = {best};
    if (takes_groups()) add_groups(tactics);
    if (takes_few_rows()) add_few_rows(tactics);
    for (const int warp_rows : {1, kAttentionWarps}) {
      for (int splits = 1; splits <= kMostSplits && (splits == 1 || may_split(splits)); splits *= 2) {
        const bool is_best = warp_rows == best.warp_rows && splits == best.splits;
        if (!is_best) tactics.push_back({.warp_rows = warp_rows, .splits = splits});
      }
    }
    return tactics;
  }

 private:
  int64_t blocks_of(int64_t rows) const { return batch_ * ((queries_ + rows - 1) / rows); }

  bool may_split(int splits) const { return limits_.clusters && keys_ >= 2 * int64_t{splits} * kKeysOfPart; }

  bool takes_groups() const {
    const TensorType &q = node_.operand_type(0), &v = node_.operand_type(2);
    const size_t rank = std::max({q.rank(), node_.operand_type(1).rank(), v.rank()});
    return !has_new_rows(node_) && limits_.warp_groups && is_half(q.dtype) && rank <= kMapRank &&
           *q.shape.back().constant() <= kWidestOfGroups && *v.shape.back().constant() <= kWidestOfGroups;
  }

  AttentionTactic best_of_warps() const {
    const bool is_many = blocks_of(kAttentionWarps * kFragmentRows) >= kManyBlocks;
    AttentionTactic best{.warp_rows = is_many ? kAttentionWarps : 1};
    const int64_t blocks = blocks_of(best.warp_rows * kFragmentRows);
    while (best.splits < kMostSplits && may_split(2 * best.splits) && blocks * 2 * best.splits <= kManyBlocks)
      best.splits *= 2;
    return best;
  }

  // Keys and values in registers: each thread has 16 bytes of a row.
  bool takes_few_rows() const {
    const int64_t width = *node_.operand_type(0).shape.back().constant();
    const auto rows = rows_of_key_head(node_);
    return is_half(node_.operand_type(0).dtype) && rows && *rows > 0 && *rows <= kMostQueries &&
           (width & (width - 1)) == 0 && width >= kLeastWidth && width <= kMostWidth &&
           width == *node_.operand_type(2).shape.back().constant();
  }

  void add_few_rows(std::vector<AttentionTactic>& tactics) const {
    constexpr int64_t kManyRowBlocks = 2 * 132;
    const int64_t lanes = *node_.operand_type(0).shape.back().constant() / 8;
    const int64_t heads = std::max<int64_t>(batch_ * queries_ / *rows_of_key_head(node_), 1);
    std::vector<AttentionTactic> own;
    for (const auto& [warps, thread_keys] : {std::pair{8, 4}, {4, 8}, {8, 8}}) {
      AttentionTactic tactic{.register_warps = warps, .thread_keys = thread_keys};
      const int64_t keys = warps * 32 / lanes * thread_keys;
      while (limits_.clusters && tactic.splits < kMostSplits && tactic.splits * keys < keys_ &&
             heads * 2 * tactic.splits <= kManyRowBlocks)
        tactic.splits *= 2;
      own.push_back(tactic);
    }
    tactics.insert(tactics.begin(), own.begin(), own.end());
  }

  // With one block or two per multiprocessor, a group waits for its own results: two share the keys then. Two
  // blocks that stand on one multiprocessor read the same keys twice, a block of twice the queries once.
  void add_groups(std::vector<AttentionTactic>& tactics) const {
    const auto fills = [&](int64_t rows) {
      return queries_ > kFragmentRows && blocks_of(rows) >= kManyBlocks;
    };
    const auto blocks = static_cast<double>(blocks_of(kGroupQueries));
    const bool leaves_room = fills(kGroupQueries) && blocks < 2 * kMultiprocessors;
    const int most_groups = blocks > kMultiprocessors ? 2 : 1;
    for (const auto& [groups, key_groups] : {std::pair{1, 4}, {2, 2}, {1, 2}}) {
      if (!may_share_keys(node_, shape_, key_groups)) continue;
      const bool is_best = leaves_room && key_groups == 2 && groups == most_groups;
      tactics.insert(is_best ? tactics.begin() : tactics.end(), {.groups = groups, .key_groups = key_groups});
    }
    for (const int groups : {1, 2}) {
      const bool is_best = fills(groups * kGroupQueries) && tactics[0].key_groups == 1;
      tactics.insert(is_best ? tactics.begin() : tactics.end(), {.groups = groups});
    }
  }

  const Node& node_;
  const GpuLimits limits_;
  const AttentionShape shape_;
  int64_t keys_ = 1, queries_ = 1, batch_ = 1;
};

}  // namespace

bool is_tensor_core_attention(const Node& node) {
  if (!ops::is_attention(*node.op)) return false;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (!holds_rows(i)) continue;
    const TensorType& type = node.operand_type(i);
    if (!has_tensor_cores(type.dtype) || !is_last_innermost(type) || !has_fragments(type)) return false;
  }
  return node.results[0]->type.layout.is_permutation() &&
         (!node.has_operand(3) || is_mask(node.operand_type(3)));
}

LayoutRequest attention_layouts(const Node& node) {
  LayoutRequest request;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const bool stays = holds_rows(i) && node.has_operand(i) && is_last_innermost(node.operand_type(i));
    request.operands.push_back(stays ? std::nullopt : std::optional(Layout{}));
  }
  request.results = {std::nullopt};
  return request;
}

std::vector<AttentionTactic> rank_tactics(const AttentionSite& site) { return TacticRanking(site).rank(); }

}  // namespace ingot::core::cuda
