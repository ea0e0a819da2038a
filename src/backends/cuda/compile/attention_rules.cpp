// SPDX-License-Identifier: Apache-2.0
// Which attention the template computes, with which layouts, and how.
#include <algorithm>
#include <cmath>
#include <optional>

#include "backends/cuda/compile/attention.h"
#include "backends/cuda/compile/attention_tile.h"
#include "backends/cuda/compile/gpu_limits.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/tile_ranking.h"
#include "backends/steps/fusion_rules.h"
#include "ops/attention.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kFragmentBytes = 32, kWidestBytes = 512;  // of a row
constexpr int kMostSplits = 8;                              // blocks of a cluster
constexpr int64_t kManyBlocks = 110;                        // enough to fill most of a GPU
constexpr int64_t kWidestOfGroups = 128;                    // of keys and values, in registers
constexpr int64_t kMostKeysOfPart = 128;

// Microseconds on an H100, of heads with 64 columns (within 15 % of 12 shapes;
// docs/design/014-cuda-contractions.md): 64 or 128 keys of one, two ... groups on a multiprocessor; the
// beginning and end of blocks that stand there alone, or beside others; merging the shares of two groups.
constexpr double kShortPart[] = {0.85, 1.1, 1.45, 1.6}, kLongPart[] = {1.3, 1.43, 1.92};
constexpr double kBeginAlone = 2.5, kBeginBesideOthers = 1, kMerge = 0.5, kNextRows = 0.3;
constexpr int64_t kMostQueries = 8, kLeastWidth = 32, kMostWidth = 256;  // with keys in registers
constexpr int64_t kMostNewRows = 4;                                      // there too

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

bool has_new_rows_in_registers(const Node& node) {
  if (!has_new_rows(node)) return true;
  const auto rows = node.operand_type(ops::kPositions).shape[0].constant();
  return rows && *rows <= kMostNewRows;
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
    if (has_keys_in_registers(node_)) add_few_rows(tactics);
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

  void add_few_rows(std::vector<AttentionTactic>& tactics) const {
    constexpr int64_t kManyRowBlocks = 2 * 132;
    const int64_t heads = std::max<int64_t>(batch_ * queries_ / *rows_of_key_head(node_), 1);
    std::vector<AttentionTactic> own;
    const bool is_wide = *node_.operand_type(0).shape.back().constant() > kGroupQueries;
    for (const auto& [warps, warp_keys] :
         {std::pair{8, is_wide ? 16 : 32}, {4, is_wide ? 16 : 32}, {8, is_wide ? 32 : 16}}) {
      AttentionTactic tactic{.register_warps = warps, .warp_keys = warp_keys};
      const int64_t keys = int64_t{warps} * warp_keys;
      while (limits_.clusters && tactic.splits < kMostSplits && tactic.splits * keys < keys_ &&
             heads * 2 * tactic.splits <= kManyRowBlocks)
        tactic.splits *= 2;
      own.push_back(tactic);
    }
    tactics.insert(tactics.begin(), own.begin(), own.end());
  }

  // Of parts of up to 128 keys, which take fewer instructions for each than those of 64, and more registers.
  std::optional<int> keys_of_long_part() const {
    constexpr int64_t kOfProduct = 16;
    const GroupMask mask = group_mask(node_);
    if (mask == GroupMask::kNumbers || keys_ <= kKeysOfPart) return std::nullopt;
    const auto keys = shape_.keys.constant();
    if (!keys || mask == GroupMask::kBits) return static_cast<int>(kMostKeysOfPart);
    const int64_t parts = divide_up(*keys, kMostKeysOfPart);
    return static_cast<int>(divide_up(divide_up(*keys, parts), kOfProduct) * kOfProduct);
  }

  // Of one group, a group waits for its own results: others hide that, with other queries or with other keys
  // of the same.
  std::vector<AttentionTactic> group_tactics() const {
    std::vector<AttentionTactic> tactics = {{.groups = 1}, {.groups = 2}};
    for (const auto& [groups, key_groups] : {std::pair{1, 4}, {2, 2}, {1, 2}}) {
      if (may_share_keys(node_, shape_, key_groups))
        tactics.push_back({.groups = groups, .key_groups = key_groups});
    }
    const auto keys = keys_of_long_part();
    if (!keys) return tactics;
    tactics.push_back({.groups = 2, .part_keys = *keys});
    if (*node_.operand_type(2).shape.back().constant() > kGroupQueries) return tactics;
    for (const int groups : {1, 3}) tactics.push_back({.groups = groups, .part_keys = *keys});
    add_row_tiles(*keys, tactics);
    if (may_share_keys(node_, shape_, 2) && keys_ > *keys)
      tactics.push_back({.groups = 1, .key_groups = 2, .part_keys = *keys});
    return tactics;
  }

  // With all keys in shared memory, of three blocks on a multiprocessor.
  void add_row_tiles(int part_keys, std::vector<AttentionTactic>& tactics) const {
    const auto keys = shape_.keys.constant();
    const int64_t tiles = divide_up(queries_, kGroupQueries);
    AttentionTile tile{.groups = 1, .keys = part_keys, .row_tiles = 2};
    if (!keys || tiles < 2) return;
    tile.stages = static_cast<int>(divide_up(*keys, part_keys));
    const int64_t bytes = tile.tile_bytes(*node_.operand_type(0).shape.back().constant(),
                                          *node_.operand_type(2).shape.back().constant());
    if (bytes > tile.room(limits_.shared_bytes, kGroupQueries)) return;
    for (int64_t row_tiles = 2; row_tiles < 2 * tiles; row_tiles *= 2)
      tactics.push_back(
          {.groups = 1, .part_keys = part_keys, .row_tiles = static_cast<int>(std::min(row_tiles, tiles))});
  }

  double predicted_us(const AttentionTactic& tactic) const {
    const int64_t value_width = *node_.operand_type(2).shape.back().constant();
    const AttentionTile tile{
        .groups = tactic.groups, .key_groups = tactic.key_groups, .keys = tactic.part_keys};
    const auto blocks = static_cast<double>(blocks_of(tile.rows() * tactic.row_tiles));
    const int resident = tile.resident_blocks(value_width);
    const int neighbours = blocks > kMultiprocessors ? resident : 1;
    const auto groups = static_cast<size_t>(neighbours * tactic.groups * tactic.key_groups);
    const double part = tactic.part_keys > kKeysOfPart
                            ? kLongPart[std::min(groups, std::size(kLongPart)) - 1] * tactic.part_keys /
                                  static_cast<double>(kMostKeysOfPart)
                            : kShortPart[std::min(groups, std::size(kShortPart)) - 1];
    const auto parts =
        static_cast<double>(divide_up(divide_up(keys_, tactic.part_keys), int64_t{tactic.key_groups}));
    const double width = static_cast<double>(value_width) / static_cast<double>(kGroupQueries);
    const double begin = resident > 1 ? kBeginBesideOthers : kBeginAlone;
    return std::ceil(blocks / (kMultiprocessors * resident)) *
           (tactic.row_tiles * (parts * part * std::max(width, 1.0) + kNextRows) + begin +
            kMerge * (tactic.key_groups - 1));
  }

  void add_groups(std::vector<AttentionTactic>& tactics) const {
    std::vector<std::pair<double, AttentionTactic>> ranked;
    for (const AttentionTactic& tactic : group_tactics()) ranked.emplace_back(predicted_us(tactic), tactic);
    std::vector<AttentionTactic> groups = fastest_first(std::move(ranked));
    const bool fills = queries_ > kFragmentRows && blocks_of(kGroupQueries) >= kManyBlocks;
    tactics.insert(fills ? tactics.begin() : tactics.end(), groups.begin(), groups.end());
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

// Four lanes have a row of keys or values, 16 bytes of every 64 each.
bool has_keys_in_registers(const Node& node) {
  const int64_t width = *node.operand_type(0).shape.back().constant();
  const auto rows = rows_of_key_head(node);
  return is_half(node.operand_type(0).dtype) && rows && *rows > 0 && *rows <= kMostQueries &&
         width % kLeastWidth == 0 && width <= kMostWidth && has_new_rows_in_registers(node) &&
         width == *node.operand_type(2).shape.back().constant();
}

std::vector<size_t> computable_rows(const Node& node) {
  if (!is_tensor_core_attention(node) || !has_keys_in_registers(node)) return {};
  if (!has_new_rows(node)) return {ops::kQuery};
  return {ops::kQuery, ops::kNewKeys, ops::kNewValues};
}

FusionAnswer may_compute_rows_of_attention(const Node& node, const Node& producer) {
  const std::vector<size_t> rows = computable_rows(node);
  if (rows.empty()) return {false, "the kernel template of attention computes rows of few queries only"};
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const bool feeds = node.operands[i] != nullptr && node.operands[i]->producer == &producer;
    if (feeds && std::ranges::count(rows, i) == 0)
      return {false, "the kernel template of attention computes queries and new rows only"};
    if (feeds && std::ranges::count(node.operands, node.operands[i]) != 1)
      return {false, "attention reads it more than once"};
  }
  return {!reads_data_dependent_indices(producer), "its indices depend on data"};
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

std::string name(const AttentionTactic& tactic) {
  const std::string tile =
      tactic.groups > 0
          ? fmt::format("{} groups of queries, {} of keys, {} at a time{}", tactic.groups, tactic.key_groups,
                        tactic.part_keys,
                        tactic.row_tiles > 1 ? fmt::format(", {} tiles of queries", tactic.row_tiles) : "")
      : tactic.register_warps > 0
          ? fmt::format("{} keys in registers of each of {} warps, {} splits", tactic.warp_keys,
                        tactic.register_warps, tactic.splits)
          : fmt::format("{} warps of queries, {} splits", tactic.warp_rows, tactic.splits);
  return fmt::format("{}, next {}", tile, name(tactic.next_start));
}

std::vector<AttentionTactic> rank_tactics(const AttentionSite& site) {
  std::vector<AttentionTactic> tactics = TacticRanking(site).rank();
  if (site.prologue)
    std::erase_if(tactics, [](const AttentionTactic& tactic) { return tactic.register_warps == 0; });
  return tactics;
}

}  // namespace ingot::core::cuda
