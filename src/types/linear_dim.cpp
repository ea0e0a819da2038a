// SPDX-License-Identifier: Apache-2.0
#include "types/linear_dim.h"

#include <fmt/core.h>

#include <cstdlib>

#include "types/checked_arithmetic.h"

namespace ingot::core {

int64_t LinearDim::symbol_of(int64_t size) const {
  return checked_floor_divide(checked_add(size, checked_multiply(offset, -1)), factor);
}
int64_t LinearDim::size_of(int64_t value) const {
  return checked_add(checked_multiply(factor, value), offset);
}

std::string LinearDim::spelled(std::string size) const {
  if (offset != 0) size = fmt::format("({} {} {})", size, offset < 0 ? "+" : "-", std::abs(offset));
  return factor == 1 ? size : fmt::format("({} // {})", size, factor);
}

// The canonical form has the constant of a sum last, and that of a product first.
std::optional<LinearDim> linear_dim(const Dim& dim) {
  LinearDim found;
  const Dim* term = &dim;
  if (dim.kind() == Dim::Kind::kAdd) {
    if (dim.operands().size() != 2 || !dim.operands()[1].is_constant()) return std::nullopt;
    term = &dim.operands()[0];
    found.offset = *dim.operands()[1].constant();
  }
  if (term->kind() == Dim::Kind::kMultiply) {
    if (term->operands().size() != 2 || !term->operands()[0].is_constant()) return std::nullopt;
    found.factor = *term->operands()[0].constant();
    term = &term->operands()[1];
  }
  if (!term->is_symbol() || found.factor <= 0) return std::nullopt;
  found.symbol = term->symbol_name();
  return found;
}

}  // namespace ingot::core
