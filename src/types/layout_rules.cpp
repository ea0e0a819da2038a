// SPDX-License-Identifier: Apache-2.0
#include "types/layout_rules.h"

#include <algorithm>
#include <utility>

namespace ingot::core {
namespace {

// Axes of one dim, smallest step first: 1%4, 4%2, 8.
bool covers(const std::vector<LayoutAxis>& parts) {
  int64_t step = 1;
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    if (parts[i].divisor != step || is_last != (parts[i].modulus == 0)) return false;
    if (!is_last && __builtin_mul_overflow(step, parts[i].modulus, &step)) return false;
  }
  return !parts.empty();
}

}  // namespace

bool is_bijection(const Layout& layout, size_t rank) {
  if (layout.is_row_major()) return true;
  std::vector<std::vector<LayoutAxis>> dims(rank);
  for (const LayoutAxis& axis : layout.axes) {
    const bool sane =
        axis.dim >= 0 && static_cast<size_t>(axis.dim) < rank && axis.divisor > 0 && axis.modulus >= 0;
    if (!sane) return false;
    dims[static_cast<size_t>(axis.dim)].push_back(axis);
  }
  // The axis without modulus is last, even after a block of one, which has the same divisor.
  const auto size = [](const LayoutAxis& axis) { return std::pair(axis.divisor, axis.modulus == 0); };
  for (auto& parts : dims) std::ranges::stable_sort(parts, {}, size);
  return std::ranges::all_of(dims, covers);
}

}  // namespace ingot::core
