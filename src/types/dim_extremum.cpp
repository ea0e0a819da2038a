// SPDX-License-Identifier: Apache-2.0
// Maximum and minimum in canonical form: flattened, sorted, dominated operands removed.
#include <algorithm>

#include "types/dim_node.h"

namespace ingot::core {
namespace {

void flatten(const Dim& dim, Dim::Kind kind, std::vector<Dim>& operands) {
  if (dim.kind() != kind) return operands.push_back(dim);
  operands.insert(operands.end(), dim.operands().begin(), dim.operands().end());
}

// True if a >= b (for kMaximum) or a <= b (for kMinimum) for all values of the symbols.
bool dominates(const Dim& a, const Dim& b, Dim::Kind kind) {
  const bool maximum = kind == Dim::Kind::kMaximum;
  if (b == Dim(maximum ? INT64_MIN : INT64_MAX)) return true;  // the end of a slice without one
  const auto difference = maximum ? try_subtract(a, b) : try_subtract(b, a);
  return difference && intrinsic_range(*difference).min >= 0;
}

Dim extremum(const Dim& a, const Dim& b, Dim::Kind kind) {
  std::vector<Dim> operands;
  flatten(a, kind, operands);
  flatten(b, kind, operands);
  std::vector<Dim> kept;
  for (const Dim& operand : operands) {
    if (std::ranges::any_of(kept, [&](const Dim& other) { return dominates(other, operand, kind); }))
      continue;
    std::erase_if(kept, [&](const Dim& other) { return dominates(operand, other, kind); });
    kept.push_back(operand);
  }
  if (kept.size() == 1) return kept[0];
  std::ranges::sort(kept, [](const Dim& x, const Dim& y) {
    return x.is_constant() != y.is_constant() ? y.is_constant() : x < y;  // the constant comes last
  });
  return DimFactory::make(kind, std::move(kept));
}

}  // namespace

Dim maximum(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(*a.constant(), *b.constant());
  return extremum(a, b, Dim::Kind::kMaximum);
}

Dim minimum(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(*a.constant(), *b.constant());
  return extremum(a, b, Dim::Kind::kMinimum);
}

}  // namespace ingot::core
