// SPDX-License-Identifier: Apache-2.0
// Tilings of a matrix product, and which of them is predicted to be fastest.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "backends/cuda/compile/gpu_limits.h"

namespace ingot::core::cuda {

// result[batch, rows, columns] += a[batch, rows, depth] b[batch, depth, columns], at typical sizes.
struct ProductSize {
  int64_t batch, rows, columns, depth;
  bool b_depth_inner;           // b is contiguous along the depth
  int element = 2;              // bytes of an operand's element
  bool orders_columns = false;  // b may be copied as with_ordered_columns does, always
  double arithmetic = 1;        // time of a multiply-add relative to one of halves
  int products = 1;             // of the same rows, each of so many columns: 2 for twins
};

// The tile of the result that a block, or a cluster of blocks, computes at a time, and how its warps share
// it.
struct Tile {
  int rows, columns;
  int warp_rows, warp_columns, warp_depths;
  int depth;       // elements that are multiplied at a time
  int stages = 3;  // buffered parts in shared memory: all but one are being copied
  int splits = 1;  // blocks of a cluster, each with a share of the depth
  int threads() const { return warp_rows * warp_columns * warp_depths * 32; }
  int64_t shared_bytes(const ProductSize& size) const;
};

// For products of few rows, which are bound by reading b: a block has the whole depth.
struct RowTile {
  int rows;                      // of the result
  bool by_tensor_cores = false;  // of halves, eight columns a warp; else lanes multiply
  int own_columns;               // of a warp, of each product
  int depth_warps = 1;           // which share the depth of these columns
  int ahead;  // steps of the depth that are loaded before the kernel waits for its predecessor
  int products = 1;
  static constexpr int kWarps = 8;
  int columns() const { return kWarps / depth_warps * own_columns; }
  int threads() const { return kWarps * 32; }
  int64_t shared_bytes(const ProductSize& size) const;
};

// For warp groups, each with 64 rows, whose operands arrive by bulk copies; one more group copies.
struct GroupTile {
  static constexpr int kGroupRows = 64, kGroupThreads = 128, kDepth = 64;
  int groups, columns;
  int stages = 3;  // parts of kDepth in shared memory
  int splits = 1;  // as of a Tile
  int rows() const { return groups * kGroupRows; }
  int threads() const { return (groups + 1) * kGroupThreads; }
  int64_t shared_bytes() const;
};

// For warp groups that finish sums from registers, while the parts of a block's next tile are copied by one
// more group. Two groups take tiles in turns: one multiplies while the other finishes. Or all have a tile
// together, 64 rows each: a larger one, of which less is copied, but whose end is not hidden.
struct PersistentTile {
  int rows, columns;  // multiples of 64 and of kOrderedColumns
  bool in_turns;
  int stages = 4;
  int groups() const { return in_turns ? 2 : rows / GroupTile::kGroupRows; }
  int threads() const { return (groups() + 1) * GroupTile::kGroupThreads; }
  int64_t shared_bytes() const;
};

// Columns of b that are copied in another order, in groups of so many (with_ordered_columns).
constexpr int64_t kOrderedColumns = 32;

// Tiles that fit the product, the predicted fastest first. None of rows if the product has more than four, or
// if b is not contiguous along the depth.
std::vector<RowTile> rank_row_tiles(const ProductSize& size);
std::vector<Tile> rank_tiles(const ProductSize& size, const GpuLimits& limits);
// The same for warp groups; empty if there are too few rows, or if the GPU has no warp groups.
using BulkTile = std::variant<GroupTile, PersistentTile>;
std::vector<BulkTile> rank_bulk_tiles(const ProductSize& size, const GpuLimits& limits);

}  // namespace ingot::core::cuda
