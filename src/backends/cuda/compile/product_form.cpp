// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/product_form.h"

#include "backends/cuda/compile/float_products_text.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/row_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/warp_group_text.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

ProductForm form_of(const RowTile& tile, const ProductSize& typical) {
  return {.rows = tile.rows,
          .columns = tile.columns(),
          .threads = tile.threads(),
          .wide = 1,
          .shared_bytes = tile.shared_bytes(typical),
          .constants = fmt::format("constexpr int kRows = {}, kWarps = {}, kOwnColumns = {}, kAhead = {}, "
                                   "kDepth = {}, kSplits = 1, "
                                   "kWide = 1;\n",
                                   tile.rows, RowTile::kWarps, tile.own_columns, tile.ahead, typical.depth),
          .body = std::string(row_body())};
}

ProductForm form_of(const Tile& tile, const ProductShape& shape, const ProductSize& typical,
                    std::string_view products) {
  const auto depth = shape.depth.constant();
  return {.rows = tile.rows,
          .columns = tile.columns,
          .threads = tile.threads(),
          .splits = tile.splits,
          .shared_bytes = tile.shared_bytes(typical),
          .constants = fmt::format(
              "constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {}, kSplits = {}, kWide = 8;\n"
              "constexpr int kWarpRows = {}, kWarpColumns = {}, kWarpDepths = {};\n"
              "constexpr bool kBDepthInner = {}, kWholeDepth = {};\n",
              tile.rows, tile.columns, tile.depth, tile.stages, tile.splits, tile.warp_rows,
              tile.warp_columns, tile.warp_depths, shape.b_depth_inner, depth && *depth % tile.depth == 0),
          .body = contraction_body(products) + std::string(sums_of_tiles())};
}

ProductForm form_of(const GroupTile& tile, BulkOperands operands, bool bf16) {
  operands.a.box[operands.a_row_dim] = tile.rows();
  operands.b.box[operands.b_column_dim] = tile.columns;
  return {
      .rows = tile.rows(),
      .columns = tile.columns,
      .threads = tile.threads(),
      .splits = tile.splits,
      .shared_bytes = tile.shared_bytes(),
      .maps = {std::move(operands.a), std::move(operands.b)},
      .functions = warp_group_functions(tile.columns, bf16),
      .constants = fmt::format(
          "constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {}, kSplits = {}, kWide = 8;\n",
          tile.rows(), tile.columns, GroupTile::kDepth, tile.stages, tile.splits),
      .body = std::string(warp_group_body()) + std::string(sums_of_tiles())};
}

}  // namespace

ProductForm product_form(const Node& contraction, const ProductShape& shape, const ProductSize& typical,
                         bool rounds_to_tf32, const GpuLimits& limits) {
  if (const auto tile = row_tile(typical); tile && contraction.op != &ops::convolution)
    return form_of(*tile, typical);
  const DType dtype = contraction.operand_type(0).dtype;
  if (dtype == DType::kF32) {
    ProductForm form = form_of(rank_tiles(typical, limits)[0], shape, typical, products_of_floats());
    form.functions = float_fragment_functions(rounds_to_tf32);
    return form;
  }
  const auto tiles = rank_group_tiles(typical, limits);
  const auto operands = tiles.empty() ? std::nullopt : bulk_operands(contraction, shape);
  if (operands) return form_of(tiles[0], *operands, dtype == DType::kBF16);
  return form_of(rank_tiles(typical, limits)[0], shape, typical, products_of_halves());
}

}  // namespace ingot::core::cuda
