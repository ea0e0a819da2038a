// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/product_form.h"

#include "backends/cuda/compile/float_products_text.h"
#include "backends/cuda/compile/moments_text.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/persistent_text.h"
#include "backends/cuda/compile/row_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/tile_ranking.h"
#include "backends/cuda/compile/warp_group_text.h"

namespace ingot::core::cuda {
namespace {

struct Product {
  const Node& contraction;
  const ProductShape& shape;
  const ProductSize& typical;
  bool rounds_to_tf32;
  DType dtype() const { return contraction.operand_type(0).dtype; }
};

// Warps for the moments of rows, beside those that multiply. Where many blocks stand in line for a
// multiprocessor, fewer of them would fit, and nobody waits for moments.
int moment_warps_of(const RowTile& tile, const Product& product) {
  const int64_t blocks = divide_up(product.typical.columns, tile.columns());
  const bool is_one_wave = static_cast<double>(blocks) <= 2 * kMultiprocessors;
  return computes_moments(product.contraction) && is_one_wave ? tile.rows : 0;
}

ProductForm form_of(const RowTile& tile, const Product& product) {
  const ProductSize& typical = product.typical;
  const int moment_warps = moment_warps_of(tile, product);
  return {.rows = tile.rows,
          .columns = tile.columns(),
          .threads = tile.threads() + moment_warps * 32,
          .wide = 1,
          .shared_bytes = tile.shared_bytes(typical),
          .constants = fmt::format(
              "constexpr int kRows = {}, kWarps = {}, kMomentWarps = {}, kProducts = {}, kOwnColumns = {}, "
              "kDepthWarps = {}, kAhead = {}, kDepth = {}, kSplits = 1, kWide = 1;\n",
              tile.rows, RowTile::kWarps, moment_warps, tile.products, tile.own_columns, tile.depth_warps,
              tile.ahead, typical.depth),
          .body = row_body(tile.by_tensor_cores)};
}

ProductForm form_of(const Tile& tile, const Product& product) {
  const auto depth = product.shape.depth.constant();
  const bool is_f32 = product.dtype() == DType::kF32;
  const std::string_view products = is_f32 ? products_of_floats() : products_of_halves();
  return {
      .rows = tile.rows,
      .columns = tile.columns,
      .threads = tile.threads(),
      .splits = tile.splits,
      .shared_bytes = tile.shared_bytes(product.typical),
      .functions = is_f32 ? float_fragment_functions(product.rounds_to_tf32) : "",
      .constants = fmt::format(
          "constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {}, kSplits = {}, kWide = 8;\n"
          "constexpr int kWarpRows = {}, kWarpColumns = {}, kWarpDepths = {}, kMultipliers = kWarpRows * "
          "kWarpColumns * kWarpDepths * 32, kSpare = 0;\n"
          "constexpr bool kBDepthInner = {}, kWholeDepth = {};\n",
          tile.rows, tile.columns, tile.depth, tile.stages, tile.splits, tile.warp_rows, tile.warp_columns,
          tile.warp_depths, product.shape.b_depth_inner, depth && *depth % tile.depth == 0),
      .body = contraction_body(products) + std::string(sums_of_tiles())};
}

ProductForm form_of(const GroupTile& tile, const Product& product) {
  BulkOperands operands = bulk_operands(product.contraction, product.shape).value();
  operands.a.box[operands.a_row_dim] = tile.rows();
  operands.b.box[operands.b_column_dim] = tile.columns;
  return {
      .rows = tile.rows(),
      .columns = tile.columns,
      .threads = tile.threads(),
      .splits = tile.splits,
      .shared_bytes = tile.shared_bytes(),
      .maps = {std::move(operands.a), std::move(operands.b)},
      .functions = warp_group_functions(tile.columns, product.dtype() == DType::kBF16),
      .constants = fmt::format(
          "constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {}, kSplits = {}, kWide = 8;\n",
          tile.rows(), tile.columns, GroupTile::kDepth, tile.stages, tile.splits),
      .body = warp_group_body(tile.splits)};
}

ProductForm form_of(const PersistentTile& tile, const Product& product) {
  BulkOperands operands = bulk_operands(product.contraction, product.shape).value();
  operands.a.box[operands.a_row_dim] = tile.rows;
  return {.rows = tile.rows,
          .columns = tile.columns,
          .threads = tile.threads(),
          .persistent = true,
          .shared_bytes = tile.shared_bytes(),
          .maps = {std::move(operands.a), with_ordered_columns(operands.b, tile.columns)},
          .functions = warp_group_functions(tile.columns, product.dtype() == DType::kBF16),
          .constants =
              fmt::format("constexpr int kRows = {}, kColumns = {}, kDepth = {}, kStages = {}, kSplits = 1;\n"
                          "constexpr bool kInTurns = {};\n",
                          tile.rows, tile.columns, GroupTile::kDepth, tile.stages, tile.in_turns),
          .body = persistent_body()};
}

}  // namespace

ProductForm product_form(const Node& contraction, const ProductShape& shape, const ProductSize& typical,
                         bool rounds_to_tf32, const ProductTactic& tactic) {
  const Product product{contraction, shape, typical, rounds_to_tf32};
  ProductForm form = std::visit([&](const auto& tile) { return form_of(tile, product); }, tactic.tile);
  form.constants += next_start_constants(tactic.next_start);
  return form;
}

}  // namespace ingot::core::cuda
