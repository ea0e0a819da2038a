// SPDX-License-Identifier: Apache-2.0
// What the template of attention and the choice of its tactic share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "ops/attention.h"

namespace ingot::core::cuda {

constexpr int64_t kFragmentRows = 16;
constexpr int kAttentionWarps = 4;     // of a block, or of a group
constexpr int kKeysOfPart = 64;        // at least
constexpr int64_t kGroupQueries = 64;  // of a group of warps

bool has_new_rows(const Node& node);
// Whether an operand holds rows of queries, keys or values.
constexpr bool holds_rows(size_t operand) {
  return operand < ops::kMask || operand == ops::kNewKeys || operand == ops::kNewValues;
}

bool is_last_innermost(const TensorType& type);  // elements of a row are neighbours

// The sizes of an attention: one product of queries and keys for each of the batch.
struct AttentionShape {
  std::vector<Dim> batch_dims;
  Dim batch = 1, queries, keys;
};
AttentionShape attention_shape(const Node& node);
// Query heads that share a head of keys and values.
Dim heads_per_key_head(const Node& node);
// All queries that read a head's keys; nullopt if their number is not constant.
std::optional<int64_t> rows_of_key_head(const Node& node);

// How groups of warps read the mask: it has none; rows of bools, 16 keys at a time; or each number.
enum class GroupMask { kNone, kBits, kNumbers };
GroupMask group_mask(const Node& node);

// The addend of a score from the mask's element `at`.
std::string_view mask_load(DType dtype);

// How the work is cut into blocks, of some warps or of groups of four warps.
struct AttentionTile {
  int groups = 0;      // of warps, with 64 queries each,
  int key_groups = 1;  // and so many times that, which share the keys; if none:
  int few_rows = 0;    // queries, all that read a head's keys, which are in registers; if none:
  int warp_rows = 1;   // warps with 16 queries each; the others share the keys
  int keys = 64;       // of a part
  int stages = 1;      // parts in shared memory
  int row_tiles = 1;   // of a block, one after another; with several, all parts are in shared memory
  int splits = 1;      // blocks of a cluster, which share the keys
  int element = 2;     // bytes of an operand's element
  int warps = kAttentionWarps;
  int warp_keys() const { return few_rows > 0 ? warps : warps / warp_rows; }
  int64_t rows() const;  // of a tile
  // Groups hide each other's exponentials if there are four of them on a multiprocessor, or three with more
  // registers.
  int resident_blocks(int64_t value_width) const;
  int64_t room(int64_t shared_bytes, int64_t value_width) const;  // for tiles, if all of them are to fit
  int threads() const { return std::max(groups, 1) * key_groups * warps * 32; }
  // Of shared memory: tiles of 128 bytes per row; sums of warps in their place, or of groups that share keys
  // in that of keys and values; sums of other blocks, with a barrier.
  int64_t tile_bytes(int64_t width, int64_t value_width) const;
  int64_t merged_bytes(int64_t width, int64_t value_width) const;
  int64_t received_bytes(int64_t value_width) const;

 private:
  int64_t panels(int64_t columns) const;                              // bytes of a row
  int64_t row_place_bytes(int64_t width, int64_t value_width) const;  // of queries, then results
};

}  // namespace ingot::core::cuda
