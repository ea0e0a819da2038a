// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/tile.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ingot::core::cuda {
namespace {

// Of an H200, in microseconds; docs/design/014-cuda-contractions.md says how they were measured.
constexpr double kProcessors = 132;
constexpr double kStart = 1.0;              // until the first operands are there
constexpr double kEnd = 0.5;                // sums to memory,
constexpr double kEndOfNumber = 0.02;       // and more for each that a thread has
constexpr double kExchange = 2.0;           // of sums in a cluster,
constexpr double kExchangedBytes = 25e3;    // and more for those of a tile
constexpr double kLatency = 0.7;            // of a copy that was just asked for
constexpr double kBytesOfProcessor = 43e3;  // into one multiprocessor, by copies of 16 bytes
constexpr double kBytesOfMemory = 4.0e6;    // from memory, for all
constexpr double kOperations = 3.6e6;       // of one multiprocessor by mma.sync, when all its warps are busy
constexpr int64_t kThreadsOfProcessor = 1024;  // with the registers that a tile's sums need

constexpr Tile kTiles[] = {{128, 128, 2, 4, 1, 64}, {128, 64, 2, 2, 2, 64}, {64, 128, 2, 4, 1, 64},
                           {64, 64, 2, 2, 2, 64},   {64, 48, 2, 1, 4, 64},  {32, 64, 2, 2, 2, 64},
                           {64, 32, 2, 2, 2, 64},   {32, 32, 2, 2, 2, 64},  {16, 64, 1, 2, 4, 128},
                           {16, 32, 1, 1, 4, 128}};
constexpr int64_t kFewRows = 16;

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

Tile fitted(Tile tile, int64_t depth) {
  while (tile.depth > 32 && tile.depth > depth) tile.depth /= 2;
  while (tile.warp_depths * 16 > tile.depth) tile.warp_depths /= 2;
  return tile;
}

int64_t parts_of(const Tile& tile, const ProductSize& size) {
  return divide_up(divide_up(size.depth, tile.depth), tile.splits);
}

// As many parts on their way as the depth has and shared memory holds.
bool take_stages(Tile& tile, const ProductSize& size, int64_t shared_bytes) {
  constexpr int kLeast = 2, kMost = 16;
  const int64_t wanted = std::clamp<int64_t>(parts_of(tile, size) + 1, kLeast, kMost);
  for (tile.stages = static_cast<int>(wanted); tile.stages >= kLeast; --tile.stages) {
    if (tile.shared_bytes(size.b_depth_inner) <= shared_bytes) return true;
  }
  return false;
}

double predicted_us(const Tile& tile, const ProductSize& size, const GpuLimits& limits) {
  const int64_t parts = parts_of(tile, size);
  const int64_t blocks =
      size.batch * divide_up(size.rows, tile.rows) * divide_up(size.columns, tile.columns) * tile.splits;
  const int64_t fitting =
      std::max<int64_t>(1, std::min(limits.shared_bytes / tile.shared_bytes(size.b_depth_inner),
                                    kThreadsOfProcessor / tile.threads()));
  const auto places = static_cast<double>(fitting) * kProcessors;
  const double waves = std::ceil(static_cast<double>(blocks) / places);
  const double neighbours =
      std::min(static_cast<double>(fitting), std::ceil(static_cast<double>(blocks) / kProcessors));
  const double elements = static_cast<double>(tile.depth * parts);
  const double intake = 2 * elements * (tile.rows + tile.columns) * neighbours / kBytesOfProcessor;
  const double busy = std::min(1.0, static_cast<double>(tile.threads()) * neighbours / 256);
  const double products = 2 * elements * tile.rows * tile.columns * neighbours / (kOperations * busy);
  const double waiting = parts < tile.stages ? 0 : kLatency * static_cast<double>(parts) / (tile.stages - 1);
  const double tile_bytes = 4.0 * tile.rows * tile.columns;
  const double exchange = tile.splits > 1 ? kExchange + tile_bytes / kExchangedBytes : 0;
  const double numbers = static_cast<double>(tile.rows * tile.columns) / (tile.threads() * tile.splits);
  const double block = std::max({intake, products, waiting}) + kEnd + kEndOfNumber * numbers + exchange;
  const double weights = 2 * static_cast<double>(size.batch * size.columns * size.depth) / kBytesOfMemory;
  return kStart + std::max(waves * block, weights);
}

}  // namespace

int64_t Tile::shared_bytes(bool b_depth_inner) const {
  constexpr int kPadding = 8, kElement = 2, kSum = 4, kSumPadding = 4;
  const int64_t a = int64_t{rows} * (depth + kPadding);
  const int64_t b =
      b_depth_inner ? int64_t{columns} * (depth + kPadding) : int64_t{depth} * (columns + kPadding);
  return std::max<int64_t>(stages * (a + b) * kElement, int64_t{rows} * (columns + kSumPadding) * kSum);
}

// Shared memory of compute capabilities: CUDA C++ Programming Guide, table of technical specifications.
GpuLimits limits_of(std::string_view architecture) {
  constexpr int64_t kKilobyte = 1024;
  int number = 0;
  const size_t digits = std::min(architecture.find_first_of("0123456789"), architecture.size());
  std::from_chars(architecture.data() + digits, architecture.data() + architecture.size(), number);
  if (number == 80 || number == 87) return {163 * kKilobyte, false};
  if (number < 90) return {99 * kKilobyte, false};
  if (number >= 120) return {99 * kKilobyte, true};
  return {227 * kKilobyte, true};
}

int64_t RowTile::shared_bytes(int64_t depth) const { return int64_t{rows} * (columns() * 4 + depth * 2); }

std::optional<RowTile> row_tile(const ProductSize& size) {
  constexpr int64_t kMostRows = 4, kMostDepth = 1 << 13, kStep = 256;
  constexpr int64_t kManyColumns = 4096;  // two a warp keep all processors busy
  constexpr int64_t kChunks = 16;         // of a lane, in registers
  if (size.rows > kMostRows || size.depth > kMostDepth || !size.b_depth_inner) return std::nullopt;
  const int own = size.columns >= kManyColumns ? 2 : 1;
  const int64_t ahead = std::min(divide_up(size.depth, kStep), kChunks / own);
  const int rows = size.rows == 3 ? 4 : static_cast<int>(size.rows);
  return RowTile{.rows = rows, .own_columns = own, .ahead = static_cast<int>(ahead)};
}

std::vector<Tile> rank_tiles(const ProductSize& size, const GpuLimits& limits) {
  std::vector<std::pair<double, Tile>> ranked;
  for (const Tile& shape : kTiles) {
    if ((shape.rows <= kFewRows) != (size.rows <= kFewRows)) continue;
    for (const int splits : {1, 2, 4, 8}) {
      Tile tile = fitted(shape, size.depth);
      tile.splits = splits;
      const bool is_shared = splits > 1;
      if (is_shared && (!limits.clusters || parts_of(tile, size) < 2)) continue;
      if (take_stages(tile, size, limits.shared_bytes))
        ranked.emplace_back(predicted_us(tile, size, limits), tile);
    }
  }
  std::ranges::stable_sort(ranked, {}, &std::pair<double, Tile>::first);
  std::vector<Tile> tiles;
  for (const auto& [time, tile] : ranked) tiles.push_back(tile);
  return tiles;
}

}  // namespace ingot::core::cuda
