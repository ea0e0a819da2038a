// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/unblocked.h"

#include <algorithm>

namespace ingot::core::cpu {
namespace {

using Axes = std::vector<LayoutAxis>;

// {0, 1, 2} for row-major.
Axes all_axes(const TensorType& type) {
  if (!type.layout.is_row_major()) return type.layout.axes;
  Axes axes;
  for (size_t i = 0; i < type.rank(); ++i) axes.push_back({static_cast<int32_t>(i)});
  return axes;
}

// The inner part of a dim that is divided once; null if there is none.
const LayoutAxis* find_block(const TensorType& type) {
  const auto is_inner = [](const LayoutAxis& axis) { return axis.divisor == 1 && axis.modulus > 1; };
  const auto found = std::ranges::find_if(type.layout.axes, is_inner);
  return found == type.layout.axes.end() ? nullptr : &*found;
}

// With `dim` as two dims, the inner one of `block` elements. Nothing if the type divides it otherwise.
std::optional<TensorType> split_dim(const TensorType& type, int32_t dim, int64_t block) {
  const LayoutAxis inner{.dim = dim, .divisor = 1, .modulus = block}, outer{.dim = dim, .divisor = block};
  Axes axes;
  for (const LayoutAxis& axis : all_axes(type)) {
    if (axis.dim != dim) {
      axes.push_back({axis.dim + (axis.dim > dim ? 1 : 0), axis.divisor, axis.modulus});
    } else if (axis == LayoutAxis{dim}) {
      axes.insert(axes.end(), {{dim}, {dim + 1}});
    } else if (axis == outer) {
      axes.push_back({dim});
    } else if (axis == inner) {
      axes.push_back({dim + 1});
    } else {
      return std::nullopt;
    }
  }
  const auto size = type.shape[static_cast<size_t>(dim)].constant();
  if (!size || *size % block != 0) return std::nullopt;
  TensorType split{type.dtype, type.shape, {}};
  split.shape[static_cast<size_t>(dim)] = *size / block;
  split.shape.insert(split.shape.begin() + dim + 1, block);
  const bool is_row_major =
      std::ranges::is_sorted(axes, {}, &LayoutAxis::dim) &&
      std::ranges::all_of(axes, [](const LayoutAxis& axis) { return axis == LayoutAxis{axis.dim}; });
  if (!is_row_major) split.layout.axes = std::move(axes);
  return split;
}

}  // namespace

std::optional<RelayoutSides> unblocked(RelayoutSides sides) {
  for (const LayoutAxis* block = nullptr;;) {
    block = find_block(sides.to);
    if (block == nullptr) block = find_block(sides.from);
    if (block == nullptr) break;
    auto from = split_dim(sides.from, block->dim, block->modulus);
    auto to = split_dim(sides.to, block->dim, block->modulus);
    if (!from || !to) return std::nullopt;
    sides = {std::move(*from), std::move(*to)};
  }
  const bool are_permutations = sides.from.layout.is_permutation() && sides.to.layout.is_permutation();
  return are_permutations ? std::optional(std::move(sides)) : std::nullopt;
}

}  // namespace ingot::core::cpu
