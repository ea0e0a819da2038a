// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/building.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "importers/aten/converters/promotion.h"
#include "ops/axis.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "ops/search_sorted.h"
#include "ops/select.h"
#include "ops/view.h"
#include "types/predicate.h"

namespace ingot::core::aten {

int64_t halvings(const core::Graph& graph, const Dim& size) {
  const auto longest = static_cast<uint64_t>(range_of(size, graph.symbols).max);
  return std::min<int64_t>(std::bit_width(longest), ops::SearchSorted::kMostSteps);
}

std::vector<int64_t> all_axes(size_t rank) {
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

std::vector<int64_t> inverse_order(const std::vector<int64_t>& order) {
  std::vector<int64_t> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) result[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  return result;
}

const Dim& extent(Call& call, const core::Value* value, size_t axis) {
  call.require(axis < value->type.rank(), "a tensor with too few dims");
  return value->type.shape[axis];
}

core::Value* counting(Call& call, const Dim& extent, const Dim& step, DType dtype) {
  return emit(call, ops::iota, {}, ops::Iota{0, step, extent, dtype});
}

core::Value* reshaped(Call& call, core::Value* value, Shape shape) {
  if (value->type.shape == shape) return value;
  if (product(value->type.shape) != product(shape))
    call.refuse("it is not known that " + to_string(value->type.shape) + " has as many elements as " +
                to_string(shape));
  return emit(call, ops::reshape, {value}, ops::NewShape{std::move(shape)});
}

core::Value* expanded(Call& call, core::Value* value, Shape shape) {
  if (value->type.shape == shape) return value;
  const Shape& from = value->type.shape;
  const bool fits = from.size() <= shape.size() &&
                    std::equal(from.rbegin(), from.rend(), shape.rbegin(),
                               [](const Dim& a, const Dim& b) { return a == b || a == Dim(1); });
  if (!fits) call.refuse("it is not known that " + to_string(from) + " broadcasts to " + to_string(shape));
  return emit(call, ops::expand, {value}, ops::NewShape{std::move(shape)});
}

core::Value* transposed(Call& call, core::Value* value, std::vector<int64_t> order) {
  if (order == all_axes(value->type.rank())) return value;
  return emit(call, ops::transpose, {value}, ops::Permutation{std::move(order)});
}

core::Value* swapped(Call& call, core::Value* value, size_t a, size_t b) {
  std::vector<int64_t> order = all_axes(value->type.rank());
  if (order.empty()) return value;
  call.require(std::max(a, b) < order.size(), "a tensor with too few dims");
  std::swap(order[a], order[b]);
  return transposed(call, value, std::move(order));
}

core::Value* sliced(Call& call, core::Value* value, size_t axis, const Dim& start, const Dim& end,
                    int64_t step) {
  if (start == Dim(0) && end == extent(call, value, axis) && step == 1) return value;
  return emit(call, ops::slice, {value}, ops::Slice{static_cast<int64_t>(axis), start, end, step});
}

core::Value* selected(Call& call, core::Value* value, size_t axis, const Dim& index) {
  return without_axes(call, sliced(call, value, axis, index, index + 1), {static_cast<int64_t>(axis)});
}

core::Value* unsqueezed(Call& call, core::Value* value, size_t axis) {
  Shape shape = value->type.shape;
  call.require(axis <= shape.size(), "a tensor with too few dims");
  shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), 1);
  return reshaped(call, value, std::move(shape));
}

core::Value* without_axes(Call& call, core::Value* value, const std::vector<int64_t>& axes) {
  Shape shape;
  for (size_t i = 0; i < value->type.rank(); ++i) {
    if (std::ranges::find(axes, static_cast<int64_t>(i)) == axes.end()) shape.push_back(value->type.shape[i]);
  }
  return reshaped(call, value, std::move(shape));
}

core::Value* concatenated(Call& call, std::vector<core::Value*> values, size_t axis) {
  call.require(!values.empty(), "an empty list to join");
  if (values.size() == 1) return values[0];
  return emit(call, ops::concat, std::move(values), ops::Axis{static_cast<int64_t>(axis)});
}

core::Value* filled(Call& call, Shape shape, double value, DType dtype) {
  return expanded(call, scalar(call.graph(), value, dtype), std::move(shape));
}

core::Value* rank_among_true(Call& call, core::Value* mask) {
  core::Value* flat = reshaped(call, converted(call.graph(), mask, DType::kI64), {element_count(mask->type)});
  core::Value* count = emit(call, ops::cumulative_sum, {flat}, ops::Axis{0});
  core::Value* rank = emit(call, ops::subtract, {count, scalar(call.graph(), 1, DType::kI64)});
  return emit(call, ops::maximum, {rank, scalar(call.graph(), 0, DType::kI64)});
}

Dim from_end(const Dim& index, const Dim& size) {
  const auto value = index.constant();
  return value && *value < 0 ? size + index : index;
}

bool is_of_any_sign(const Dim& integer, const SymbolTable& symbols) {
  return std::ranges::any_of(integer.symbols(), [&](const std::string& symbol) {
    const auto info = symbols.find(symbol);
    return info != symbols.end() && info->second.range.min == INT64_MIN;
  });
}

Dim smaller(const Dim& a, const Dim& b, const SymbolTable& symbols) {
  if (provably_not_negative(b - a, symbols)) return a;
  if (provably_not_negative(a - b, symbols)) return b;
  return minimum(a, b);
}

}  // namespace ingot::core::aten
