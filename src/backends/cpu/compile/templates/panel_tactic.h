// SPDX-License-Identifier: Apache-2.0
// The tactics of a product with prepacked weights: how the loops of panel_kernel.h are cut. All read the same
// panels and add up in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "support/cpu_features.h"

namespace ingot::core::cpu {

struct TileShape;

struct PanelTactic {
  int rows = 0;  // MR; 0: those of the tile
  // MC: most bytes of A that stay in the second-level cache while the panels pass, with room for a panel of
  // B.
  int64_t row_block_bytes = 0;  // 0: fits_second_level
  // Below this, all rows are one block: each panel is then read from memory once, and A stays in the
  // third-level cache.
  int64_t whole_rows_bytes = 2 << 20;
  bool operator==(const PanelTactic&) const = default;
};

// Of processors with AVX-512 it has 1 MiB and more. Blocks of 256 KiB made 197 x 3072 x 768 15 % slower on an
// Intel Xeon (Emerald Rapids, 2 MiB), whose third-level cache is far away.
inline int64_t fits_second_level(CpuFeatures features) {
  return (features.has(CpuFeature::kX86V4) ? 768 : 256) << 10;
}

// "tiles of 8 rows, blocks of 262144 bytes, all rows up to 2097152": unique among the tactics of a tile.
std::string name(const PanelTactic& tactic, const TileShape& tile);

// The default first.
std::vector<PanelTactic> rank_tactics(const TileShape& tile, CpuFeatures features);

}  // namespace ingot::core::cpu
