// SPDX-License-Identifier: Apache-2.0
#include "loops/index_facts.h"

#include <algorithm>

#include "types/with_operands.h"

namespace ingot::core::loops {
namespace {

std::vector<Dim> terms_of(const Dim& dim) {
  if (dim.kind() != Dim::Kind::kAdd) return {dim};
  return {dim.operands().begin(), dim.operands().end()};
}

}  // namespace

void IndexFacts::add(const Loop& loop) {
  const int64_t extent = range_of(loop.extent, ranges_).max;
  ranges_[loop.variable] = {.range = {0, extent == INT64_MAX ? extent : std::max<int64_t>(extent - 1, 0)}};
  last_[loop.variable] = loop.extent - Dim(1);
}

// nullopt if the dim is not known to be monotonic in its variables.
std::optional<Dim> IndexFacts::largest(const Dim& dim) const {
  std::map<std::string, Dim> ends;
  for (const std::string& name : dim.symbols()) {
    const auto last = last_.find(name);
    if (last == last_.end()) continue;
    const auto stride = stride_along(dim, name);
    if (!stride || range_of(*stride, ranges_).min < 0) return std::nullopt;
    ends.insert(*last);
  }
  return substitute(dim, ends);
}

bool IndexFacts::is_below(const Dim& dim, const Dim& limit) const {
  if (provably_less(dim, limit, ranges_)) return true;
  const auto end = largest(dim);
  return end && provably_less(*end, limit, ranges_);
}

bool IndexFacts::divides(const Dim& divisor, const Dim& dim) const {
  return range_of(divisor, ranges_).min > 0 && modulo(dim, divisor) == Dim(0);
}

// Finds the unit from one term, or from all but one, which stay below it.
std::optional<IndexFacts::Parts> IndexFacts::split(const Dim& dividend, const Dim& divisor) const {
  const auto terms = terms_of(dividend);
  if (terms.size() < 2) return std::nullopt;
  for (const bool one : {true, false}) {
    for (const Dim& term : terms) {
      const Dim low = one ? term : dividend - term;
      const auto end = largest(low);
      if (!end || !is_not_negative(low)) continue;
      const Dim unit = *end + Dim(1);
      if (unit == Dim(1) || !divides(unit, divisor) || !divides(unit, dividend - low)) continue;
      return Parts{floor_divide(dividend - low, unit), low, unit};
    }
  }
  return std::nullopt;
}

Dim IndexFacts::simplify_quotient(const Dim& dividend, const Dim& divisor) const {
  if (is_not_negative(dividend) && is_below(dividend, divisor)) return 0;
  if (const auto parts = split(dividend, divisor))
    return simplify_quotient(parts->high, floor_divide(divisor, parts->unit));
  return floor_divide(dividend, divisor);
}

Dim IndexFacts::simplify_remainder(const Dim& dividend, const Dim& divisor) const {
  if (is_not_negative(dividend) && is_below(dividend, divisor)) return dividend;
  if (const auto parts = split(dividend, divisor)) {
    return simplify_remainder(parts->high, floor_divide(divisor, parts->unit)) * parts->unit + parts->low;
  }
  return modulo(dividend, divisor);
}

Dim IndexFacts::simplify(const Dim& dim) const {
  if (dim.is_constant()) return dim;
  if (dim.is_symbol()) {
    const auto last = last_.find(dim.symbol_name());
    return last != last_.end() && last->second == Dim(0) ? Dim(0) : dim;
  }
  std::vector<Dim> operands;
  for (const Dim& operand : dim.operands()) operands.push_back(simplify(operand));
  if (dim.kind() == Dim::Kind::kFloorDivide) return simplify_quotient(operands[0], operands[1]);
  if (dim.kind() == Dim::Kind::kModulo) return simplify_remainder(operands[0], operands[1]);
  return with_operands(dim, operands);
}

std::optional<Dim> stride_along(const Dim& offset, const std::string& variable) {
  const Dim symbol = Dim::symbol(variable);
  const Dim stride = substitute(offset, {{variable, symbol + Dim(1)}}) - offset;
  const auto symbols = stride.symbols();
  if (std::ranges::find(symbols, variable) != symbols.end()) return std::nullopt;
  return stride;
}

}  // namespace ingot::core::loops
