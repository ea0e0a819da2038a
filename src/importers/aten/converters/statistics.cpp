// SPDX-License-Identifier: Apache-2.0
// Quantiles, and the indices of triangles.
#include <algorithm>
#include <array>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/sort.h"

namespace ingot::core::aten {
namespace {

// ---- ignoring NaN ----

// ---- order statistics ----
// Sorted lines and their dim; a tensor without `dim` is one line.
struct Lines {
  Term sorted;
  size_t axis;
};
Lines sorted_lines(Call& call) {
  core::Value* x = call.tensor("self");
  if (!call.has("dim")) x = reshaped(call, x, {element_count(x->type)});
  const size_t axis = call.has("dim") && x->type.rank() > 0 ? call.axis("dim", x->type.rank()) : 0;
  if (x->type.rank() == 0) x = reshaped(call, x, {1});
  const core::Node* node = call.graph().add(ops::sort, {x}, ops::Sort{static_cast<int64_t>(axis), false});
  return {{call, node->results[0]}, axis};
}
// The element at each position of [Q] in each line; the dim of the lines becomes Q.
Term at_ranks(Call& call, const Lines& lines, const Term& ranks) {
  return {call, emit(call, ops::take, {lines.sorted, ranks.to(DType::kI64)},
                     ops::Axis{static_cast<int64_t>(lines.axis)})};
}
Term between(Call& call, const Lines& lines, const Term& rank) {
  const std::string way = call.text("interpolation");
  const Term below = rank.apply(ops::floor), above = rank.apply(ops::ceil);
  if (way == "lower") return at_ranks(call, lines, below);
  if (way == "higher") return at_ranks(call, lines, above);
  if (way == "nearest") return at_ranks(call, lines, rank.apply(ops::round));
  const Term low = at_ranks(call, lines, below), high = at_ranks(call, lines, above);
  if (way == "midpoint") return low + (high - low) * 0.5;
  Shape along(lines.sorted.shape().size(), 1);
  along[lines.axis] = rank.shape()[0];
  return low + (high - low) * Term(call, reshaped(call, rank - below, along));
}
void quantile(Call& call) {
  const Lines lines = sorted_lines(call);
  const Dim size = lines.sorted.shape()[lines.axis];
  const DType dtype = lines.sorted.dtype();
  core::Value* q = operand(call, "q", dtype);
  const bool single = q->type.rank() == 0;
  const Term extent(call, size_scalar(call.graph(), size - 1, dtype));
  const Term ranks = Term(call, reshaped(call, q, {element_count(q->type)})) * extent;
  Term result = between(call, lines, ranks);
  // NaN sorts last: a line that contains NaN is NaN.
  const Term last(call, sliced(call, lines.sorted, lines.axis, size - 1, size));
  result = last.apply(ops::is_nan).choose(last, result);
  Shape shape = call.result_meta().shape;
  core::Value* value = result;
  if (!single) {  // the quantiles come first
    std::vector<int64_t> order{static_cast<int64_t>(lines.axis)};
    for (int64_t i = 0; i < static_cast<int64_t>(result.shape().size()); ++i) {
      if (i != static_cast<int64_t>(lines.axis)) order.push_back(i);
    }
    value = transposed(call, value, std::move(order));
  }
  call.give(reshaped(call, value, std::move(shape)));
}

// ---- trapezoidal integration ----

// ---- indices of triangles ----
constexpr int64_t kMostRows = 4096;  // their indices are a constant

template <bool kUpper>
void triangle_indices(Call& call) {
  const int64_t rows = call.integer("row"), columns = call.integer("col"), offset = call.integer("offset");
  const DType dtype = call.result_meta().dtype;
  call.require(is_integer(dtype), "indices that are not integers");
  call.require(rows >= 0 && columns >= 0 && std::max(rows, columns) <= kMostRows, "a very large triangle");
  const auto for_each_place = [&](const auto& visit) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) {
        if (kUpper ? j - i >= offset : j - i <= offset) visit(i, j);
      }
    }
  };
  int64_t count = 0, next = 0;
  for_each_place([&](int64_t, int64_t) { ++count; });
  Tensor tensor = make_tensor(dtype, {2, count});
  for_each_place([&](int64_t row, int64_t column) {
    write_integer(tensor.view(), std::array<int64_t, 2>{0, next}, row);
    write_integer(tensor.view(), std::array<int64_t, 2>{1, next++}, column);
  });
  call.give(call.graph().add_constant(std::move(tensor)));
}

constexpr Converter kStatisticsConverters[] = {
    {"aten.quantile.default", quantile, kComposed},
    {"aten.quantile.scalar", quantile, kComposed},
    {"aten.tril_indices.default", triangle_indices<false>, kComposed},
    {"aten.triu_indices.default", triangle_indices<true>, kComposed},
};

}  // namespace

std::span<const Converter> statistics_converters() { return kStatisticsConverters; }

}  // namespace ingot::core::aten
