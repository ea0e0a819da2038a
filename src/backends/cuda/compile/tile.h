// SPDX-License-Identifier: Apache-2.0
// How a product of matrices is cut into blocks, and which cut is predicted to be fastest.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "backends/cuda/compile/gpu_limits.h"

namespace ingot::core::cuda {

// result[batch, rows, columns] += a[batch, rows, depth] b[batch, depth, columns], at typical sizes.
struct ProductSize {
  int64_t batch, rows, columns, depth;
  bool b_depth_inner;     // neighbours of b lie along the depth
  int element = 2;        // bytes of an operand's
  double arithmetic = 1;  // time of a product of two numbers beside one of halves
};

// The part of the result that a block, or a cluster of them, computes at a time, and how its warps share it.
struct Tile {
  int rows, columns;
  int warp_rows, warp_columns, warp_depths;
  int depth;       // elements that are multiplied at a time
  int stages = 3;  // parts in shared memory: all but one are being copied
  int splits = 1;  // blocks of a cluster, each with a share of the depth
  int threads() const { return warp_rows * warp_columns * warp_depths * 32; }
  int64_t shared_bytes(const ProductSize& size) const;
};

// For products of few rows, whose time is that of reading b: all of the depth is a block's.
struct RowTile {
  int rows;         // of the result
  int own_columns;  // of a warp
  int ahead;        // steps of 512 bytes of the depth that are loaded before the kernel waits
  static constexpr int kWarps = 8;
  int columns() const { return kWarps * own_columns; }
  int threads() const { return kWarps * 32; }
  int64_t shared_bytes(const ProductSize& size) const;
};

// For warp groups, each with 64 rows, whose operands come by bulk copies; one more group copies.
struct GroupTile {
  static constexpr int kGroupRows = 64, kGroupThreads = 128, kDepth = 64;
  int groups, columns;
  int stages = 3;  // parts of kDepth in shared memory
  int splits = 1;  // as of a Tile
  int rows() const { return groups * kGroupRows; }
  int threads() const { return (groups + 1) * kGroupThreads; }
  int64_t shared_bytes() const;
};

// Nothing if the product has more rows, or if neighbours in b do not lie along the depth.
std::optional<RowTile> row_tile(const ProductSize& size);
// Tiles that suit the product, the predicted fastest first.
std::vector<Tile> rank_tiles(const ProductSize& size, const GpuLimits& limits);
// The same of tiles for warp groups; none if the rows are too few, or if there are no warp groups.
std::vector<GroupTile> rank_group_tiles(const ProductSize& size, const GpuLimits& limits);

}  // namespace ingot::core::cuda
