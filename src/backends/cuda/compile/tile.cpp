// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/tile.h"

#include <algorithm>
#include <cmath>

#include "backends/cuda/compile/tile_ranking.h"

namespace ingot::core::cuda {
namespace {

// For an H200, in microseconds: fitted to 51 tilings of each product of an encoder layer of BERT, in the
// whole graph (within 16 %; docs/design/014-cuda-contractions.md).
constexpr double kStart = 2.0;              // of a kernel after another
constexpr double kEndOfNumber = 0.035;      // for storing each element of a thread
constexpr double kRound = 0.34;             // of sums between shares of the depth in a block
constexpr double kExchange = 1.5;           // of accumulators in a cluster,
constexpr double kExchangedBytes = 42e3;    // and more for those of a tile
constexpr double kLatency = 3.0;            // of a copy when many are in flight
constexpr double kBytesOfProcessor = 42e3;  // into one multiprocessor, by copies of 16 bytes,
constexpr double kBytesOfAll = 5.0e6;       // and into all
constexpr double kOperations = 2.0e6;       // of one multiprocessor by mma.sync, when all its warps are busy
constexpr int64_t kThreadsOfProcessor = 1024;  // with the registers that a tile's sums need

// Depths for halves; wider elements have shorter ones.
constexpr Tile kTiles[] = {{128, 128, 2, 4, 1, 64}, {128, 64, 4, 2, 1, 64}, {64, 128, 2, 4, 1, 64},
                           {64, 64, 4, 2, 1, 64},   {64, 48, 2, 3, 1, 64},  {32, 96, 2, 3, 1, 64},
                           {32, 64, 2, 4, 1, 64},   {64, 32, 4, 2, 1, 64},  {32, 32, 2, 2, 2, 64},
                           {32, 32, 2, 2, 2, 128},  {16, 64, 1, 2, 4, 128}, {16, 32, 1, 1, 4, 128}};
constexpr int64_t kFewRows = 16;

Tile fitted(Tile tile, const ProductSize& size) {
  constexpr int kLeastBytes = 64, kFragmentBytes = 32;
  tile.depth = tile.depth * 2 / size.element;
  while (tile.depth * size.element > kLeastBytes && tile.depth > size.depth) tile.depth /= 2;
  while (tile.warp_depths * kFragmentBytes > tile.depth * size.element) tile.warp_depths /= 2;
  return tile;
}

int64_t parts_of(const Tile& tile, const ProductSize& size) {
  return divide_up(divide_up(size.depth, tile.depth), tile.splits);
}

// As many parts in flight as the depth has and shared memory holds.
bool take_stages(Tile& tile, const ProductSize& size, int64_t shared_bytes) {
  constexpr int kLeast = 2, kMost = 16;
  const int64_t wanted = std::clamp<int64_t>(parts_of(tile, size) + 1, kLeast, kMost);
  for (tile.stages = static_cast<int>(wanted); tile.stages >= kLeast; --tile.stages) {
    if (tile.shared_bytes(size) <= shared_bytes) return true;
  }
  return false;
}

double predicted_us(const Tile& tile, const ProductSize& size, const GpuLimits& limits) {
  const double parts = static_cast<double>(parts_of(tile, size));
  const double blocks = static_cast<double>(size.batch * divide_up(size.rows, tile.rows) *
                                            divide_up(size.columns, tile.columns) * tile.splits);
  const int64_t shared = tile.shared_bytes(size);
  const auto fitting = static_cast<double>(std::clamp<int64_t>(
      std::min(limits.shared_bytes / shared, kThreadsOfProcessor / tile.threads()), 1, kThreadsOfProcessor));
  const double waves = std::ceil(blocks / (fitting * processors_for(tile.splits)));
  const double neighbours = std::min(fitting, std::ceil(blocks / kMultiprocessors));
  const double elements = tile.depth * parts * neighbours;
  const double rate = std::min(kBytesOfProcessor, kBytesOfAll / std::min(kMultiprocessors, blocks));
  const double intake = size.element * elements * (tile.rows + tile.columns) / rate;
  const double busy = std::min(1.0, tile.threads() * neighbours / 256);
  const double products = 2 * size.arithmetic * elements * tile.rows * tile.columns / (kOperations * busy);
  const double waiting = parts < tile.stages ? 0 : kLatency * parts / (tile.stages - 1);
  const double numbers = tile.rows * tile.columns * neighbours / (tile.threads() * tile.splits);
  const double exchange =
      tile.splits > 1 ? kExchange + 4 * tile.rows * tile.columns * neighbours / kExchangedBytes : 0;
  return kStart + waves * (std::max({intake, products, waiting}) + kEndOfNumber * numbers +
                           kRound * (tile.warp_depths - 1) + exchange);
}

}  // namespace

int64_t Tile::shared_bytes(const ProductSize& size) const {
  constexpr int kPaddingBytes = 16, kColumnPadding = 8, kSum = 4, kSumPadding = 4;
  const int64_t row = int64_t{depth} * size.element + kPaddingBytes;
  const int64_t b =
      size.b_depth_inner ? columns * row : int64_t{depth} * (columns + kColumnPadding) * size.element;
  return std::max<int64_t>(stages * (rows * row + b), int64_t{rows} * (columns + kSumPadding) * kSum);
}

int64_t RowTile::shared_bytes(const ProductSize& size) const {
  return int64_t{rows} * (depth_warps * products * columns() * 4 + size.depth * size.element);
}

namespace {

constexpr int64_t kChunksOfLane = 16;  // of 16 bytes of b, in registers

// `chunks`: of a lane in a step.
RowTile with_steps_ahead(RowTile tile, int64_t steps, int64_t chunks) {
  tile.ahead = static_cast<int>(std::min(steps, kChunksOfLane / chunks));
  return tile;
}

// As many columns of a block as `columns` of each warp would be.
RowTile tile_of_lanes(const ProductSize& size, int rows, int columns) {
  constexpr int64_t kStepBytes = 512;
  return with_steps_ahead({.rows = rows, .own_columns = columns, .products = size.products},
                          divide_up(size.depth * size.element, kStepBytes), columns * size.products);
}

RowTile tile_of_tensor_cores(const ProductSize& size, int rows, int columns) {
  constexpr int kColumns = 8, kSlices = 2;  // of a warp
  constexpr int64_t kDepthOfSlice = 32;
  const int depth_warps = kColumns / columns;
  return with_steps_ahead({.rows = rows,
                           .by_tensor_cores = true,
                           .own_columns = kColumns,
                           .depth_warps = depth_warps,
                           .products = size.products},
                          divide_up(size.depth, depth_warps * kSlices * kDepthOfSlice),
                          kSlices * size.products);
}

// Then lanes are faster, which read 512 bytes of a column at a time (Llama 1B: 685 us a step, else 728).
bool is_bound_by_memory(const ProductSize& size) {
  constexpr int64_t kManyBytes = 10 << 20, kLongDepth = 4096;
  return size.products * size.columns * size.depth * size.element > kManyBytes && size.depth <= kLongDepth;
}

}  // namespace

std::vector<RowTile> rank_row_tiles(const ProductSize& size) {
  constexpr int64_t kMostRows = 4, kMostDepthBytes = 1 << 14, kWarpBytes = 512;
  // Two columns per warp keep enough processors busy then, if all of them are loaded ahead, and leave more of
  // them to the next kernel (48 blocks of 768 columns in GPT-2: 6 us less of 164 than 96 blocks).
  constexpr int64_t kManyColumns = 768;
  if (size.rows > kMostRows || size.depth * size.element > kMostDepthBytes || !size.b_depth_inner) return {};
  const int rows = size.rows == 3 ? 4 : static_cast<int>(size.rows);
  const int64_t chunks = size.products * divide_up(size.depth * size.element, kWarpBytes);  // of a column
  const bool has_many = size.columns >= kManyColumns && 2 * chunks <= kChunksOfLane;
  const int first = has_many ? 2 : 1;
  std::vector<RowTile> tiles;
  for (const int columns : {first, 3 - first}) tiles.push_back(tile_of_lanes(size, rows, columns));
  if (size.element != 2) return tiles;
  for (const int columns : {first, 3 - first}) tiles.push_back(tile_of_tensor_cores(size, rows, columns));
  if (!is_bound_by_memory(size)) std::ranges::rotate(tiles, tiles.begin() + 2);
  return tiles;
}

std::vector<Tile> rank_tiles(const ProductSize& size, const GpuLimits& limits) {
  std::vector<std::pair<double, Tile>> ranked;
  for (const Tile& shape : kTiles) {
    if ((shape.rows <= kFewRows) != (size.rows <= kFewRows)) continue;
    for (const int splits : {1, 2, 4, 8}) {
      Tile tile = fitted(shape, size);
      tile.splits = splits;
      const bool is_shared = splits > 1;
      if (is_shared && (!limits.clusters || parts_of(tile, size) < 2)) continue;
      if (take_stages(tile, size, limits.shared_bytes))
        ranked.emplace_back(predicted_us(tile, size, limits), tile);
    }
  }
  return fastest_first(std::move(ranked));
}

}  // namespace ingot::core::cuda
