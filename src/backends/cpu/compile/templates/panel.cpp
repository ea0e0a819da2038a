// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel.h"

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {

Layout panel_layout(std::span<const int> order, int columns, const TileShape& tile) {
  Layout layout = Layout::blocked(order, columns, tile.columns());
  if (tile.group() == 1) return layout;
  LayoutAxis& innermost = layout.axes[layout.axes.size() - 2];
  innermost.divisor = tile.group();
  layout.axes.push_back({innermost.dim, 1, tile.group()});
  return layout;
}

void convert_panel(Scaffold& scaffold, const TileShape& tile, int64_t steps, llvm::Value* from,
                   llvm::Value* to) {
  Builder& builder = scaffold.builder;
  emit_loop(builder, scaffold.number(0), scaffold.number(steps * tile.vectors), 1, [&](llvm::Value* i) {
    llvm::Value* source = scaffold.byte_at(from, scaffold.times(i, row_bytes(tile.b, tile.lanes)));
    llvm::Value* place = scaffold.byte_at(to, scaffold.times(i, row_bytes(tile.a, tile.lanes)));
    store_lanes(builder, tile.a, load_as_float(builder, tile.b, source, tile.lanes), place);
  });
}

PrefetchedShare prefetched_by(Scaffold& scaffold, const TileShape& tile, int64_t steps,
                              const PanelPass& pass) {
  Builder& builder = scaffold.builder;
  llvm::Value* bytes = scaffold.number(tile.step_bytes());  // of the panel for each step
  llvm::Value* stride =
      scaffold.smaller(scaffold.ceil_divide(bytes, pass.tiles), scaffold.number(kCacheLine));
  llvm::Value* before = builder.CreateNSWMul(pass.tile, stride);
  llvm::Value* share = scaffold.byte_at(pass.next, scaffold.times(before, steps));
  llvm::Value* fetches = builder.CreateICmpSLT(before, bytes);
  return {builder.CreateSelect(fetches, share, pass.panel), stride};
}

}  // namespace ingot::core::cpu
