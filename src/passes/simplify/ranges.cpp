// SPDX-License-Identifier: Apache-2.0
// Comparisons of integers that the ranges of their operands decide.
#include <algorithm>
#include <cmath>

#include "ops/generate.h"
#include "ops/ops.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

constexpr int64_t kNone = INT64_MAX;  // no bound above

// Start + step * i, counted upwards from a start that is known.
std::optional<DimRange> range_of_iota(const Node& node, const SymbolTable& symbols) {
  const auto iota = node.attributes<ops::Iota>();
  const auto start = iota.start.constant(), step = iota.step.constant();
  const int64_t most = range_of(iota.extent, symbols).max;
  int64_t last = 0;
  if (!start || !step || *step < 0 || iota.dtype != DType::kI64) return std::nullopt;
  if (most == kNone || __builtin_mul_overflow(most, *step, &last) ||
      __builtin_add_overflow(*start, last, &last))
    return DimRange{*start, kNone};
  return DimRange{*start, std::max(*start, last - *step)};
}

// Sums do not wrap: their bounds exist.
std::optional<DimRange> sum_of(const std::optional<DimRange>& a, const std::optional<DimRange>& b) {
  DimRange sum;
  if (!a || !b || a->max == kNone || b->max == kNone || __builtin_add_overflow(a->min, b->min, &sum.min) ||
      __builtin_add_overflow(a->max, b->max, &sum.max))
    return std::nullopt;
  return sum;
}

// Its elements are some of its operand's; padding adds others.
bool rearranges(const Node& node) {
  return node.op->traits.has(Trait::kView) && node.op != &ops::pad && node.operands.size() == 1;
}

// Of all elements; nullopt: not known.
std::optional<DimRange> range_of_elements(const Value* value, const SymbolTable& symbols) {
  if (!is_integer(value->type.dtype)) return std::nullopt;
  if (const auto number = number_everywhere(value)) {
    constexpr double kExact = 1LL << 53;
    if (std::abs(*number) >= kExact) return std::nullopt;
    const auto integer = static_cast<int64_t>(*number);
    return DimRange{integer, integer};
  }
  const Node* node = value->producer;
  if (node == nullptr) return std::nullopt;
  if (node->op == &ops::iota) return range_of_iota(*node, symbols);
  if (rearranges(*node)) return range_of_elements(node->operands[0], symbols);
  if (node->op == &ops::add && value->type.dtype == DType::kI64)
    return sum_of(range_of_elements(node->operands[0], symbols),
                  range_of_elements(node->operands[1], symbols));
  return std::nullopt;
}

// Whether x >= y, or x > y, for all elements, or for none.
std::optional<bool> is_above(const Value* x, const Value* y, bool or_equal, const SymbolTable& symbols) {
  const auto a = range_of_elements(x, symbols), b = range_of_elements(y, symbols);
  if (!a || !b) return std::nullopt;
  if (b->max != kNone && (or_equal ? a->min >= b->max : a->min > b->max)) return true;
  if (a->max != kNone && (or_equal ? a->max < b->min : a->max <= b->min)) return false;
  return std::nullopt;
}

template <bool swapped, bool or_equal>
Value* decided(Graph& graph, const Match& match) {
  const Value *x = match.value("x"), *y = match.value("y");
  const auto answer =
      swapped ? is_above(y, x, or_equal, graph.symbols) : is_above(x, y, or_equal, graph.symbols);
  return answer ? add_number(graph, *answer ? 1 : 0, DType::kBool, match.result()->type.shape) : nullptr;
}

constexpr Rule kRangeRules[] = {
    {.name = "greater_in_range", .from = "greater(x, y)", .build = decided<false, false>},
    {.name = "greater_equal_in_range", .from = "greater_equal(x, y)", .build = decided<false, true>},
    {.name = "less_in_range", .from = "less(x, y)", .build = decided<true, false>},
    {.name = "less_equal_in_range", .from = "less_equal(x, y)", .build = decided<true, true>},
};

}  // namespace

std::span<const Rule> range_rules() { return kRangeRules; }

}  // namespace ingot::core::rewriting
