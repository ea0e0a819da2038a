// SPDX-License-Identifier: Apache-2.0
// Prepacked weights: panels of tile.columns() columns, and what all kernels do with one. `steps` is the depth
// in groups of tile.group() numbers.
#pragma once

#include "backends/cpu/compile/templates/scaffold.h"
#include "backends/cpu/compile/templates/tile.h"
#include "types/layout.h"

namespace ingot::core::cpu {

// Whether panels are narrower than the rows that they are multiplied with: converted where they are loaded,
// or as a whole where several tiles read them.
inline bool is_narrow(const TileShape& tile) { return tile.a == DType::kF32 && tile.b != DType::kF32; }
inline TileShape converted_tile(TileShape tile) {
  tile.b = tile.a;
  tile.by_tables = false;
  return tile;
}

// Layout of weights with columns in dim `columns`: {.., columns/panel, others in `order`, columns%panel};
// with groups of the innermost of `order` innermost: those of the tile, or of `group` elements.
Layout panel_layout(std::span<const int> order, int columns, const TileShape& tile, int group = 0);

// One vector after another, from a narrow panel to one of converted_tile(tile).
void convert_panel(Scaffold& scaffold, const TileShape& tile, int64_t steps, llvm::Value* from,
                   llvm::Value* to);

// What a tile prefetches of the panel after its own: a share, so that memory is read at an even rate.
struct PrefetchedShare {
  llvm::Value *from, *stride;  // as TileCall::next
};
struct PanelPass {
  llvm::Value *tile,
      *tiles;  // the tile's index among those that pass over the panel now, and how many there are
  llvm::Value *panel, *next;  // stored ones
};
PrefetchedShare prefetched_by(Scaffold& scaffold, const TileShape& tile, int64_t steps,
                              const PanelPass& pass);

}  // namespace ingot::core::cpu
