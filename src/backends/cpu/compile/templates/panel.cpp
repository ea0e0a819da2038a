// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/panel.h"

#include "backends/cpu/compile/llvm/elements.h"
#include "backends/cpu/compile/llvm/float_tables.h"
#include "backends/cpu/compile/templates/target.h"

namespace ingot::core::cpu {

Layout panel_layout(std::span<const int> order, int columns, const TileShape& tile, int group) {
  Layout layout = Layout::blocked(order, columns, tile.columns());
  if (group == 0) group = tile.group();
  if (group == 1) return layout;
  LayoutAxis& innermost = layout.axes[layout.axes.size() - 2];
  innermost.divisor = group;
  layout.axes.push_back({innermost.dim, 1, group});
  return layout;
}

void convert_panel(Scaffold& scaffold, const TileShape& tile, int64_t steps, llvm::Value* from,
                   llvm::Value* to) {
  Builder& builder = scaffold.builder;
  const int together = tile.by_tables ? tile.vectors : 1;
  emit_loop(builder, scaffold.number(0), scaffold.number(steps * tile.vectors), together,
            [&](llvm::Value* i) {
              llvm::Value* source = scaffold.byte_at(from, scaffold.times(i, row_bytes(tile.b, tile.lanes)));
              const std::vector<llvm::Value*> vectors =
                  tile.by_tables ? in_order_of_numbers(builder, load_by_tables(builder, tile.b, source))
                                 : std::vector{load_as_float(builder, tile.b, source, tile.lanes)};
              for (int v = 0; v < together; ++v) {
                llvm::Value* place = scaffold.times(scaffold.plus(i, v), row_bytes(tile.a, tile.lanes));
                store_lanes(builder, tile.a, vectors[v], scaffold.byte_at(to, place));
              }
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
