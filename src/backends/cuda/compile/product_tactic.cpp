// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/product_tactic.h"

#include <fmt/core.h>

#include "backends/cuda/compile/operand_text.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

std::string tile_name(const RowTile& tile) {
  const std::string_view both = tile.products > 1 ? "of both " : "";
  return tile.by_tensor_cores ? fmt::format("rows {}, {} columns {}of {} warps, {} ahead", tile.rows,
                                            tile.own_columns, both, tile.depth_warps, tile.ahead)
                              : fmt::format("rows {}, {} columns {}a warp, {} ahead", tile.rows,
                                            tile.own_columns, both, tile.ahead);
}

std::string tile_name(const Tile& tile) {
  return fmt::format("warps {}x{}x{} of {}x{}x{}, {} stages, {} splits", tile.warp_rows, tile.warp_columns,
                     tile.warp_depths, tile.rows, tile.columns, tile.depth, tile.stages, tile.splits);
}

std::string tile_name(const GroupTile& tile) {
  return fmt::format("groups {}x{}, {} stages, {} splits", tile.rows(), tile.columns, tile.stages,
                     tile.splits);
}

std::string tile_name(const PersistentTile& tile) {
  return fmt::format("{} {}x{}, {} stages", tile.in_turns ? "turns" : "together", tile.rows, tile.columns,
                     tile.stages);
}

std::vector<ProductTactic> tactics_of(const std::vector<BulkTile>& tiles) {
  std::vector<ProductTactic> tactics;
  for (const BulkTile& any : tiles) std::visit([&](const auto& tile) { tactics.push_back({tile}); }, any);
  return tactics;
}

template <typename AnyTile>
std::vector<ProductTactic> tactics_of(const std::vector<AnyTile>& tiles, NextStart next_start) {
  std::vector<ProductTactic> tactics;
  for (const AnyTile& tile : tiles) tactics.push_back({tile, next_start});
  return tactics;
}

}  // namespace

std::string name(const ProductTactic& tactic) {
  return fmt::format("{}, next {}", std::visit([](const auto& tile) { return tile_name(tile); }, tactic.tile),
                     name(tactic.next_start));
}

int columns_of(const ProductTactic& tactic) {
  const auto columns = [](const auto& tile) {
    if constexpr (std::is_same_v<std::decay_t<decltype(tile)>, RowTile>)
      return tile.columns();
    else
      return tile.columns;
  };
  return std::visit(columns, tactic.tile);
}

std::vector<ProductTactic> rank_tactics(const Node& contraction, const ProductShape& shape,
                                        const ProductSize& typical, const GpuLimits& limits) {
  if (contraction.op != &ops::convolution) {
    const std::vector<RowTile> rows = rank_row_tiles(typical);
    if (!rows.empty()) return tactics_of(rows, NextStart::kAtOnce);
  }
  return rank_tiles_of_blocks(contraction, shape, typical, limits);
}

std::vector<ProductTactic> rank_tiles_of_blocks(const Node& contraction, const ProductShape& shape,
                                                const ProductSize& typical, const GpuLimits& limits) {
  if (typical.element == 2) {
    const std::vector<BulkTile> tiles = rank_bulk_tiles(typical, limits);
    if (!tiles.empty() && bulk_operands(contraction, shape)) return tactics_of(tiles);
  }
  return tactics_of(rank_tiles(typical, limits), NextStart::kWithOperands);
}

}  // namespace ingot::core::cuda
