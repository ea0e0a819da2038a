// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel_tactic.h"

#include <algorithm>

#include <fmt/core.h>

#include "backends/cpu/compile/templates/tile.h"

namespace ingot::core::cpu {
namespace {

// Other numbers of rows whose accumulators, a row of B and a broadcast of A fit the registers: the most, and
// fewer.
std::vector<int> other_rows(const TileShape& tile, CpuFeatures features) {
  if (tile.by_matrices) return {tile.rows / 2};
  const int registers = features.has(CpuFeature::kX86V4) ? 32 : 16;
  const int most = std::min((registers - 1 - tile.vectors) / tile.vectors, 16);
  std::vector<int> rows;
  for (const int count : {most, most - 2, tile.rows - 2, tile.rows / 2}) {
    const bool is_known = count == tile.rows || std::ranges::find(rows, count) != rows.end();
    if (count > 0 && count <= most && !is_known) rows.push_back(count);
  }
  return rows;
}

}  // namespace

std::string name(const PanelTactic& tactic, const TileShape& tile) {
  return fmt::format("tiles of {} rows, blocks of {} bytes, all rows up to {}",
                     tactic.rows == 0 ? tile.rows : tactic.rows, tactic.row_block_bytes,
                     tactic.whole_rows_bytes);
}

// One change at a time, then both.
std::vector<PanelTactic> rank_tactics(const TileShape& tile, CpuFeatures features) {
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20;
  const std::vector<PanelTactic> blocks = {{.row_block_bytes = 256 * kKiB, .whole_rows_bytes = 256 * kKiB},
                                           {.row_block_bytes = 768 * kKiB, .whole_rows_bytes = 768 * kKiB},
                                           {.row_block_bytes = 64 * kKiB, .whole_rows_bytes = 64 * kKiB},
                                           {.row_block_bytes = 256 * kKiB, .whole_rows_bytes = 16 * kMiB}};
  const std::vector<int> rows = other_rows(tile, features);
  std::vector<PanelTactic> tactics = {{}};
  for (const int count : rows) tactics.push_back({.rows = count});
  tactics.insert(tactics.end(), blocks.begin(), blocks.end());
  for (const int count : rows) {
    for (PanelTactic block : blocks) {
      block.rows = count;
      tactics.push_back(block);
    }
  }
  return tactics;
}

}  // namespace ingot::core::cpu
