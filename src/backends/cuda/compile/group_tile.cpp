// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "backends/cuda/compile/tile.h"
#include "backends/cuda/compile/tile_ranking.h"

namespace ingot::core::cuda {
namespace {

// For an H200, in microseconds: fitted to 320 tilings of the products of BERT-base and ViT-B/16 in the whole
// graph, so that the first choice costs little (docs/design/014-cuda-contractions.md).
constexpr double kGroupStart = 1.0;              // of a kernel after another,
constexpr double kStartOfByte = 1.2e-5;          // and for each byte of a block, which the next kernel lacks
constexpr double kEndOfNumbers = 1.56e-4;        // for storing each element of a tile,
constexpr double kOddColumns = 0.8;              // and of one with half an order of columns
constexpr double kGroupExchange = 0.52;          // of accumulators in a cluster,
constexpr double kGroupExchangedBytes = 17.7e3;  // and more for those of a tile
constexpr double kSmallCluster = 2;              // clusters of blocks with little shared memory start late
constexpr int64_t kSmallBlock = 64 << 10;
constexpr double kBulkLatency = 1.05;            // of parts that have to wait for a free buffer
constexpr double kBulkBytesOfProcessor = 220e3;  // into one multiprocessor
constexpr double kBulkBytesOfAll = 11.5e6;       // and into all
constexpr double kGroupOperations = 8.6e6;       // of one multiprocessor
constexpr double kNotHidden = 0.17;              // of the shorter of copies and products
constexpr int64_t kFewestRows = 17;
constexpr int kFewStages = 4;            // leave room for other blocks
constexpr int kMediumStages[] = {8, 6};  // hide the latency, and leave some

// Persistent tiles are bound by the bandwidth of shared memory, by what copies bring into all multiprocessors
// (in turns) or by what power allows to multiply (together): within 10 % for tiles of 128 x 128 in turns and
// 15 % for those together, on the products of BERT-base and ViT-B/16, 32 images or 32 x 128 rows, on an H100.
constexpr double kTurnStart = 3.5;          // of a kernel after another, and the end of its last tile
constexpr double kTurnEnd = 0.25;           // of a tile that the next one does not hide
constexpr double kSharedBytes = 215e3;      // of one multiprocessor
constexpr double kTurnBytesOfAll = 10.3e6;  // into all multiprocessors
constexpr int64_t kFewestTurnRows = 1024;
constexpr double kFewestTurns = 1.9;  // or so many tiles of a multiprocessor

constexpr double kTogetherStart = 3.0;
constexpr double kTogetherEnd = 0.4;              // of a tile,
constexpr double kColumnEnd = 6.5e-3;             // and for each of its columns
constexpr double kTogetherSharedBytes = 235e3;    // of one multiprocessor
constexpr double kTogetherOperations = 745e6;     // of all,
constexpr double kOperationsOfProcessor = 6.8e6;  // and of one

constexpr PersistentTile kPersistentTiles[] = {{128, 128, true},  {64, 192, true},   {64, 256, true},
                                               {64, 128, true},   {192, 192, false}, {128, 256, false},
                                               {128, 192, false}, {192, 128, false}, {128, 128, false},
                                               {128, 96, false},  {128, 64, false}};

// Of equal predictions the first counts: two groups are a little faster than one with as many columns.
constexpr GroupTile kGroupTiles[] = {{2, 32}, {2, 64}, {2, 96}, {2, 128}, {2, 192}, {2, 256},
                                     {1, 32}, {1, 48}, {1, 64}, {1, 96},  {1, 128}};

int64_t parts_of(const GroupTile& tile, const ProductSize& size) {
  return divide_up(divide_up(size.depth, GroupTile::kDepth), tile.splits);
}

bool take_stages(GroupTile& tile, const ProductSize& size, int64_t shared_bytes) {
  constexpr int kLeast = 2, kMost = 16;
  const auto wanted = std::clamp<int64_t>(parts_of(tile, size), kLeast, kMost);
  for (tile.stages = static_cast<int>(wanted); tile.stages >= kLeast; --tile.stages) {
    if (tile.shared_bytes() <= shared_bytes) return true;
  }
  return false;
}

// Resident blocks per multiprocessor.
int64_t fitting_blocks(const GroupTile& tile, const GpuLimits& limits) {
  constexpr int64_t kReserved = 1024, kThreads = 2048, kRegisters = 1 << 16, kLeastRegisters = 40,
                    kOthers = 48;
  const int64_t registers = std::max<int64_t>(kLeastRegisters, tile.columns / 2 + kOthers);
  const int64_t fitting = std::min({(limits.shared_bytes + kReserved) / (tile.shared_bytes() + kReserved),
                                    kThreads / tile.threads(), kRegisters / (tile.threads() * registers)});
  return std::max<int64_t>(fitting, 1);
}

double predicted_us(const GroupTile& tile, const ProductSize& size, const GpuLimits& limits) {
  const auto parts = static_cast<double>(parts_of(tile, size));
  const auto blocks = static_cast<double>(size.batch * divide_up(size.rows, tile.rows()) *
                                          divide_up(size.columns, tile.columns) * tile.splits);
  const auto fitting = static_cast<double>(fitting_blocks(tile, limits));
  const double processors = processors_for(tile.splits);
  const double waves = std::ceil(blocks / (fitting * processors));
  const double neighbours = std::min(fitting, std::ceil(blocks / processors));
  const double elements = GroupTile::kDepth * parts * neighbours;
  const double rate = std::min(kBulkBytesOfProcessor, kBulkBytesOfAll / std::min(kMultiprocessors, blocks));
  const double intake = 2 * elements * (tile.rows() + tile.columns) / rate;
  const double products = 2 * elements * tile.rows() * tile.columns / kGroupOperations;
  const double waiting = kBulkLatency * std::max(0.0, parts / tile.stages - 1);
  const double numbers = tile.rows() * tile.columns * neighbours;
  const double launch = tile.splits > 2 && tile.shared_bytes() < kSmallBlock ? kSmallCluster : 0;
  const double exchange = tile.splits > 1 ? kGroupExchange + 4 * numbers / kGroupExchangedBytes + launch : 0;
  const double odd = tile.columns % kOrderedColumns != 0 ? kOddColumns : 0;
  return kGroupStart + kStartOfByte * static_cast<double>(tile.shared_bytes()) + odd +
         waves * (std::max(intake, products) + kNotHidden * std::min(intake, products) + waiting +
                  kEndOfNumbers * numbers / tile.splits + exchange);
}

// `tile` has the most stages that it can have.
std::pair<double, GroupTile> with_best_stages(const GroupTile& tile, const ProductSize& size,
                                              const GpuLimits& limits) {
  std::pair<double, GroupTile> best{predicted_us(tile, size, limits), tile};
  for (const int stages : kMediumStages) {
    if (stages >= tile.stages) continue;
    GroupTile other = tile;
    other.stages = stages;
    if (const double us = predicted_us(other, size, limits); us < best.first) best = {us, other};
  }
  return best;
}

int64_t tiles_of(const PersistentTile& tile, const ProductSize& size) {
  return size.batch * divide_up(size.rows, tile.rows) * divide_up(size.columns, tile.columns);
}

// A part's operands are copied to shared memory once and read for each 64 rows.
double shared_traffic(const PersistentTile& tile) {
  constexpr double kRows = GroupTile::kGroupRows;
  return tile.rows / kRows * (kRows + tile.columns) + tile.rows + tile.columns;
}

double turns_us(const PersistentTile& tile, double tiles, double depth) {
  constexpr double kElement = 2;
  const double of_one = shared_traffic(tile) / kSharedBytes;
  const double of_all = (tile.rows + tile.columns) * std::min(kMultiprocessors, tiles) / kTurnBytesOfAll;
  return kTurnStart +
         std::ceil(tiles / kMultiprocessors) * (kElement * depth * std::max(of_one, of_all) + kTurnEnd);
}

double together_us(const PersistentTile& tile, double tiles, double depth) {
  constexpr double kElement = 2;
  const double operations = 2.0 * tile.rows * tile.columns;
  const double of_one =
      std::max(kElement * shared_traffic(tile) / kTogetherSharedBytes, operations / kOperationsOfProcessor);
  const double of_all = operations * std::min(kMultiprocessors, tiles) / kTogetherOperations;
  return kTogetherStart + std::ceil(tiles / kMultiprocessors) *
                              (depth * std::max(of_one, of_all) + kTogetherEnd + kColumnEnd * tile.columns);
}

double predicted_us(const PersistentTile& tile, const ProductSize& size) {
  const auto tiles = static_cast<double>(tiles_of(tile, size));
  const auto depth = static_cast<double>(divide_up(size.depth, GroupTile::kDepth)) * GroupTile::kDepth;
  return tile.in_turns ? turns_us(tile, tiles, depth) : together_us(tile, tiles, depth);
}

bool has_turns(const ProductSize& size) {
  constexpr double kTile = 128 * 128;
  const auto elements = static_cast<double>(size.rows) * static_cast<double>(size.columns);
  return size.rows >= kFewestTurnRows || elements >= kFewestTurns * kMultiprocessors * kTile;
}

void rank_persistent(const ProductSize& size, const GpuLimits& limits,
                     std::vector<std::pair<double, BulkTile>>& ranked) {
  constexpr int kMostStages = 8, kFewest = 3;
  if (!size.orders_columns) return;
  for (PersistentTile tile : kPersistentTiles) {
    if (tile.in_turns && !has_turns(size)) continue;
    for (tile.stages = kMostStages; tile.shared_bytes() > limits.shared_bytes;) --tile.stages;
    if (tile.stages >= kFewest) ranked.emplace_back(predicted_us(tile, size), tile);
  }
}

}  // namespace

int64_t PersistentTile::shared_bytes() const {
  constexpr int64_t kElement = 2, kBarriers = 16;
  return stages * int64_t{GroupTile::kDepth} * (rows + columns) * kElement + (stages + 1) * kBarriers;
}

int64_t GroupTile::shared_bytes() const {
  constexpr int64_t kElement = 2, kSum = 4, kSumPadding = 4, kBarriers = 16;
  const int64_t parts = stages * int64_t{kDepth} * (rows() + columns) * kElement;
  const int64_t sums = rows() * (columns + kSumPadding) * kSum;
  return std::max(parts, sums) + (splits > 1 ? sums : 0) + (stages + 1) * kBarriers;
}

std::vector<BulkTile> rank_bulk_tiles(const ProductSize& size, const GpuLimits& limits) {
  std::vector<std::pair<double, BulkTile>> ranked;
  if (!limits.warp_groups || !size.b_depth_inner || size.rows < kFewestRows) return {};
  for (const GroupTile& shape : kGroupTiles) {
    for (const int splits : {1, 2, 4, 8}) {
      GroupTile tile = shape;
      tile.splits = splits;
      if (splits > 1 && parts_of(tile, size) < 2) continue;
      if (take_stages(tile, size, limits.shared_bytes))
        ranked.push_back(with_best_stages(tile, size, limits));
      if (tile.stages <= kFewStages) continue;
      tile.stages = kFewStages;
      ranked.emplace_back(predicted_us(tile, size, limits), tile);
    }
  }
  rank_persistent(size, limits, ranked);
  return fastest_first(std::move(ranked));
}

}  // namespace ingot::core::cuda
