// SPDX-License-Identifier: Apache-2.0
// Values and ranges of dims.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "support/error.h"
#include "types/dim_node.h"

namespace ingot::core {
namespace {

constexpr int64_t kLow = INT64_MIN;   // as a bound: minus infinity
constexpr int64_t kHigh = INT64_MAX;  // as a bound: infinity
constexpr DimRange kEverything{kLow, kHigh};

bool is_infinite(int64_t bound) { return bound == kLow || bound == kHigh; }

int64_t saturating_add(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) return a < 0 ? kLow : kHigh;
  return result;
}

int64_t saturating_multiply(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  int64_t result;
  const bool overflows = __builtin_mul_overflow(a, b, &result);
  if (overflows || is_infinite(a) || is_infinite(b)) return (a < 0) != (b < 0) ? kLow : kHigh;
  return result;
}

int64_t saturating_divide(int64_t a, int64_t b) {
  const bool negative = (a < 0) != (b < 0);
  if (is_infinite(a)) return negative ? kLow : kHigh;
  if (is_infinite(b)) return a != 0 && negative ? -1 : 0;
  return checked_floor_divide(a, b);
}

template <typename Operation>
DimRange hull_of_corners(DimRange a, DimRange b, Operation operation) {
  const std::array corners = {operation(a.min, b.min), operation(a.min, b.max), operation(a.max, b.min),
                              operation(a.max, b.max)};
  return {*std::ranges::min_element(corners), *std::ranges::max_element(corners)};
}

DimRange add_ranges(DimRange a, DimRange b) {
  return {saturating_add(a.min, b.min), saturating_add(a.max, b.max)};
}

DimRange multiply_ranges(DimRange a, DimRange b) { return hull_of_corners(a, b, saturating_multiply); }

// A divisor is never zero: a bound of zero moves by one.
DimRange without_zero(DimRange range) {
  if (range.min == 0) range.min = std::min<int64_t>(1, std::max<int64_t>(range.max, 1));
  if (range.max == 0) range.max = -1;
  return range;
}

DimRange divide_ranges(DimRange a, DimRange b) {
  b = without_zero(b);
  if (b.min > b.max) return kEverything;
  if (b.min > 0 || b.max < 0) return hull_of_corners(a, b, saturating_divide);
  const DimRange positive = hull_of_corners(a, {1, b.max}, saturating_divide);
  const DimRange negative = hull_of_corners(a, {b.min, -1}, saturating_divide);
  return {std::min(positive.min, negative.min), std::max(positive.max, negative.max)};
}

DimRange modulo_ranges(DimRange a, DimRange b) {
  b = without_zero(b);
  if (a.min >= 0 && b.min > a.max) return a;
  DimRange result{b.min < 0 ? saturating_add(b.min, 1) : 0, b.max > 0 ? saturating_add(b.max, -1) : 0};
  if (a.min >= 0 && b.min > 0) result.max = std::min(result.max, a.max);
  return result;
}

DimRange combine_ranges(Dim::Kind kind, DimRange a, DimRange b) {
  switch (kind) {
    case Dim::Kind::kAdd:
      return add_ranges(a, b);
    case Dim::Kind::kMultiply:
      return multiply_ranges(a, b);
    case Dim::Kind::kFloorDivide:
      return divide_ranges(a, b);
    case Dim::Kind::kModulo:
      return modulo_ranges(a, b);
    case Dim::Kind::kMaximum:
      return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Dim::Kind::kMinimum:
      return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Dim::Kind::kConstant:
    case Dim::Kind::kSymbol:
      break;
  }
  throw InternalError("a constant or symbol has no operands");
}

int64_t combine_values(Dim::Kind kind, int64_t a, int64_t b) {
  switch (kind) {
    case Dim::Kind::kAdd:
      return checked_add(a, b);
    case Dim::Kind::kMultiply:
      return checked_multiply(a, b);
    case Dim::Kind::kFloorDivide:
      return checked_floor_divide(a, b);
    case Dim::Kind::kModulo:
      return checked_modulo(a, b);
    case Dim::Kind::kMaximum:
      return std::max(a, b);
    case Dim::Kind::kMinimum:
      return std::min(a, b);
    case Dim::Kind::kConstant:
    case Dim::Kind::kSymbol:
      break;
  }
  throw InternalError("a constant or symbol has no operands");
}

}  // namespace

int64_t evaluate(const Dim& dim, const SymbolValues& values) {
  if (dim.is_constant()) return *dim.constant();
  if (dim.is_symbol()) {
    const auto found = values.find(dim.symbol_name());
    if (found != values.end()) return found->second;
    throw UserError("INGOT-U104", fmt::format("the symbolic size '{}' has no value", dim.symbol_name()));
  }
  const auto operands = dim.operands();
  int64_t result = evaluate(operands[0], values);
  for (const Dim& operand : operands.subspan(1)) {
    result = combine_values(dim.kind(), result, evaluate(operand, values));
  }
  return result;
}

namespace {

DimRange interval_of(const Dim& dim, const SymbolTable& symbols) {
  if (dim.is_constant()) return {*dim.constant(), *dim.constant()};
  if (dim.is_symbol()) {
    const auto found = symbols.find(dim.symbol_name());
    return found == symbols.end() ? kEverything : found->second.range;
  }
  const auto operands = dim.operands();
  DimRange result = interval_of(operands[0], symbols);
  for (const Dim& operand : operands.subspan(1)) {
    result = combine_ranges(dim.kind(), result, interval_of(operand, symbols));
  }
  return result;
}

// The symbols of the dim, of which those over the axes of one rank symbol have one entry of their tables at a
// time. nullopt if the dim has none.
std::optional<DimRange> range_over_ranks(const Dim& dim, const SymbolTable& symbols) {
  SymbolTable known;
  const RankSizes* first = nullptr;
  for (const std::string& name : dim.symbols()) {
    const auto found = symbols.find(name);
    if (found == symbols.end()) continue;
    known.insert(*found);
    if (first == nullptr && found->second.by_rank) first = &*found->second.by_rank;
  }
  if (first == nullptr) return std::nullopt;
  DimRange result{kHigh, kLow};
  for (size_t entry = 0; entry < first->sizes.size(); ++entry) {
    for (auto& [name, info] : known) {
      const std::optional<RankSizes>& own = symbols.find(name)->second.by_rank;
      if (own && own->axes == first->axes) info = {.range = {own->sizes[entry], own->sizes[entry]}};
    }
    const DimRange range = range_of(dim, known);
    result = {std::min(result.min, range.min), std::max(result.max, range.max)};
  }
  return result;
}

}  // namespace

DimRange range_of(const Dim& dim, const SymbolTable& symbols) {
  const auto is_of_ranks = [](const auto& symbol) { return symbol.second.by_rank.has_value(); };
  if (!dim.is_constant() && !dim.is_symbol() && std::ranges::any_of(symbols, is_of_ranks)) {
    if (const auto range = range_over_ranks(dim, symbols)) return *range;
  }
  return interval_of(dim, symbols);
}

DimRange intrinsic_range(const Dim& dim) { return range_of(dim, {}); }

bool provably_equal(const Dim& a, const Dim& b, const SymbolTable& symbols) {
  if (a == b) return true;
  const auto difference = try_subtract(a, b);
  return difference && range_of(*difference, symbols) == DimRange{0, 0};
}

bool provably_less(const Dim& a, const Dim& b, const SymbolTable& symbols) {
  const int64_t highest = range_of(a, symbols).max;
  if (highest < range_of(b, symbols).min && !is_infinite(highest)) return true;
  const auto difference = try_subtract(b, a);
  return difference && range_of(*difference, symbols).min > 0;
}

SymbolValues typical_sizes(const SymbolTable& symbols) {
  constexpr int64_t kModerateSize = 64;  // if neither the user nor the example gives a size
  SymbolValues values;
  for (const auto& [name, info] : symbols)
    values[name] = info.typical.value_or(std::clamp(kModerateSize, info.range.min, info.range.max));
  // Memory is reserved for all that a step may find, so that much is typical. Bounds may refer to each other.
  for (size_t round = 0; round < symbols.size(); ++round) {
    bool changed = false;
    for (const auto& [name, info] : symbols) {
      if (!info.upper_bound || info.typical) continue;
      changed |= std::exchange(values[name], evaluate(*info.upper_bound, values)) != values[name];
    }
    if (!changed) break;
  }
  return values;
}

}  // namespace ingot::core
