// SPDX-License-Identifier: Apache-2.0
// The tactics of a product: how it is cut into tiles, and when the next kernel may start.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "backends/cuda/compile/next_start.h"
#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/tile.h"

namespace ingot::core::cuda {

struct ProductTactic {
  std::variant<RowTile, Tile, GroupTile, PersistentTile> tile;
  NextStart next_start = NextStart::kWithOperands;
};

// "groups 64x96, 4 stages, 2 splits, next at once": unique among the tactics of a product.
std::string name(const ProductTactic& tactic);

// The predicted fastest first; never empty. The next kernel starts with the operands; behind products of few
// rows, which leave room on the multiprocessors for its weights, at once.
std::vector<ProductTactic> rank_tactics(const Node& contraction, const ProductShape& shape,
                                        const ProductSize& typical, const GpuLimits& limits);
// The same of tiles that all of a block's threads finish, eight neighbours each: none of single rows.
std::vector<ProductTactic> rank_tiles_of_blocks(const Node& contraction, const ProductShape& shape,
                                                const ProductSize& typical, const GpuLimits& limits);
constexpr int kMostTileRows = 128;
int columns_of(const ProductTactic& tactic);  // of its tile

}  // namespace ingot::core::cuda
