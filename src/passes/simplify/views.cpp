// SPDX-License-Identifier: Apache-2.0
// Views without effect, and views of views.
#include <algorithm>

#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

bool keeps_shape(const Match& match) { return match.value("x")->type == match.result()->type; }
bool keeps_dtype(const Match& match) { return match.value("x")->type.dtype == match.dtype(); }
bool is_row_major(const Match& match) {
  return match.value("x")->type.layout.is_row_major() && match.result()->type.layout.is_row_major();
}

Value* reshape_once(Graph& graph, const Match& match) {
  return graph.call(ops::reshape, {match.value("x")}, match.root().values);
}

Value* expand_once(Graph& graph, const Match& match) {
  return graph.call(ops::expand, {match.value("x")}, match.root().values);
}

Value* relayout_once(Graph& graph, const Match& match) {
  return graph.call(ops::relayout, {match.value("x")}, match.root().values);
}

Value* transpose_once(Graph& graph, const Match& match) {
  const auto outer = match.root().attributes<ops::Permutation>().order;
  const auto inner = match.node("first").attributes<ops::Permutation>().order;
  ops::Permutation both;
  for (const int64_t axis : outer) both.order.push_back(inner[static_cast<size_t>(axis)]);
  return graph.call(ops::transpose, {match.value("x")}, both);
}

// A transpose that keeps the order of the dims larger than 1 moves no elements.
bool moves_only_ones(const Match& match) {
  const Shape& shape = match.value("x")->type.shape;
  std::vector<int64_t> moved = match.root().attributes<ops::Permutation>().order;
  std::erase_if(moved, [&](int64_t axis) { return shape[static_cast<size_t>(axis)] == Dim(1); });
  return is_row_major(match) && std::ranges::is_sorted(moved);
}

// For each dim of `to` the dims of `from` that it merges; nullopt if `to` does more than merge adjacent dims.
std::optional<std::vector<std::vector<int64_t>>> joined_dims(const Shape& from, const Shape& to) {
  std::vector<std::vector<int64_t>> joined;
  size_t next = 0;
  for (const Dim& dim : to) {
    Dim size = 1;
    joined.emplace_back();
    for (; size != dim && next < from.size(); ++next) {
      size = size * from[next];
      joined.back().push_back(static_cast<int64_t>(next));
    }
    if (size != dim) return std::nullopt;
  }
  if (next != from.size() || from.size() <= to.size()) return std::nullopt;
  return joined;
}

// Transposes first and merges then: the result is row-major if layouts make the transpose free, as after
// channels-last convolutions.
Value* join_last(Graph& graph, const Match& match) {
  const auto joined = joined_dims(match.value("x")->type.shape, match.value("flat")->type.shape);
  if (!joined || !match.is_used_once("flat")) return nullptr;
  ops::Permutation moved;
  for (const int64_t axis : match.root().attributes<ops::Permutation>().order) {
    const auto& axes = (*joined)[static_cast<size_t>(axis)];
    moved.order.insert(moved.order.end(), axes.begin(), axes.end());
  }
  return graph.call(ops::reshape, {graph.call(ops::transpose, {match.value("x")}, moved)},
                    ops::NewShape{match.result()->type.shape});
}

Value* reshape_to_result(Graph& graph, const Match& match) {
  return graph.call(ops::reshape, {match.value("x")}, ops::NewShape{match.result()->type.shape});
}

// An expand that only prepends dims of size 1.
bool adds_only_ones(const Match& match) {
  const Shape& from = match.value("x")->type.shape;
  const Shape& to = match.result()->type.shape;
  const size_t added = to.size() - from.size();
  return added > 0 && is_row_major(match) && std::ranges::equal(from, std::span(to).subspan(added)) &&
         std::ranges::all_of(std::span(to).first(added), [](const Dim& dim) { return dim == Dim(1); });
}

bool is_whole_slice(const Match& match) {
  const auto slice = match.root().attributes<ops::Slice>();
  return slice.step == 1 && slice.start == Dim(0) && keeps_shape(match);
}

Value* slice_once(Graph& graph, const Match& match) {
  const auto outer = match.root().attributes<ops::Slice>();
  const auto inner = match.node("first").attributes<ops::Slice>();
  if (outer.axis != inner.axis) return nullptr;
  ops::Slice both = outer;
  both.start = inner.start + outer.start * inner.step;
  both.step = inner.step * outer.step;
  // The end of the outer slice's last index, exclusive: an end past the operand would be rejected.
  const Dim count = match.result()->type.shape[static_cast<size_t>(outer.axis)];
  both.end = both.start + (count - 1) * both.step + 1;
  if (count == Dim(0)) both.end = both.start;
  return both.step == 1 || count.is_constant() ? graph.call(ops::slice, {match.value("x")}, both) : nullptr;
}

bool is_zero_roll(const Match& match) { return match.root().attributes<ops::Roll>().shift == Dim(0); }
bool is_empty_pad(const Match& match) {
  const auto pad = match.root().attributes<ops::Pad>();
  const auto is_zero = [](const Dim& dim) { return dim == Dim(0); };
  return std::ranges::all_of(pad.low, is_zero) && std::ranges::all_of(pad.high, is_zero);
}
bool flips_back(const Match& match) { return match.root().values == match.node("first").values; }

// A view of a constant tensor is constant.
Value* full_of_result(Graph& graph, const Match& match) {
  auto full = match.node("number").attributes<ops::Full>();
  full.shape = match.result()->type.shape;
  return graph.call(ops::full, {}, full);
}

// One place for all indices, such as that of the only kind of token: a slice, which no kernel has to read
// for each index.
Value* take_once(Graph& graph, const Match& match) {
  const auto axis = match.root().attributes<ops::Axis>().axis;
  const Shape& shape = match.value("x")->type.shape;
  const auto place = number_everywhere(match.value("index"));
  const auto extent = shape[static_cast<size_t>(axis)].constant();
  if (!place || !extent || *place < 0 || *place >= static_cast<double>(*extent)) return nullptr;
  const auto start = static_cast<int64_t>(*place);
  Value* slice =
      graph.call(ops::slice, {match.value("x")}, ops::Slice{.axis = axis, .start = start, .end = start + 1});
  Shape ones(shape.begin(), shape.begin() + axis);
  ones.resize(ones.size() + match.value("index")->type.rank(), 1);
  ones.insert(ones.end(), shape.begin() + axis + 1, shape.end());
  return graph.call(ops::expand, {graph.call(ops::reshape, {slice}, ops::NewShape{ones})},
                    ops::NewShape{match.result()->type.shape});
}

// Sums over dims of size 1 are the only element.
bool reduces_only_ones(const Match& match) {
  if (!keeps_dtype(match)) return false;
  const Shape& shape = match.value("x")->type.shape;
  const auto axes = match.root().attributes<ops::Reduce>().axes;
  return is_row_major(match) &&
         std::ranges::all_of(axes, [&](int64_t axis) { return shape[static_cast<size_t>(axis)] == Dim(1); });
}

constexpr Rule kViewRules[] = {
    {.name = "reshape_full", .from = "reshape(number:full())", .build = full_of_result},
    {.name = "expand_full", .from = "expand(number:full())", .build = full_of_result},
    {.name = "transpose_full", .from = "transpose(number:full())", .build = full_of_result},
    {.name = "slice_full", .from = "slice(number:full())", .build = full_of_result},
    {.name = "flip_full", .from = "flip(number:full())", .build = full_of_result},
    {.name = "reshape_to_same", .from = "reshape(x)", .to = "x", .when = keeps_shape},
    {.name = "reshape_twice", .from = "reshape(reshape(x))", .build = reshape_once},
    {.name = "expand_to_same", .from = "expand(x)", .to = "x", .when = keeps_shape},
    {.name = "expand_twice", .from = "expand(expand(x))", .build = expand_once},
    {.name = "expand_by_ones", .from = "expand(x)", .when = adds_only_ones, .build = reshape_to_result},
    {.name = "transpose_twice", .from = "transpose(first:transpose(x))", .build = transpose_once},
    {.name = "transpose_of_ones",
     .from = "transpose(x)",
     .when = moves_only_ones,
     .build = reshape_to_result},
    {.name = "transpose_of_joined", .from = "transpose(flat:reshape(x))", .build = join_last},
    {.name = "slice_whole", .from = "slice(x)", .to = "x", .when = is_whole_slice},
    {.name = "slice_twice", .from = "slice(first:slice(x))", .build = slice_once},
    {.name = "take_of_one_place", .from = "take(x, index)", .build = take_once},
    {.name = "flip_twice", .from = "flip(first:flip(x))", .to = "x", .when = flips_back},
    {.name = "roll_by_zero", .from = "roll(x)", .to = "x", .when = is_zero_roll},
    {.name = "pad_by_nothing", .from = "pad(x)", .to = "x", .when = is_empty_pad},
    {.name = "relayout_to_same", .from = "relayout(x)", .to = "x", .when = keeps_shape},
    {.name = "relayout_twice", .from = "relayout(relayout(x))", .build = relayout_once},
    {.name = "sum_of_one", .from = "sum(x)", .when = reduces_only_ones, .build = reshape_to_result},
    {.name = "mean_of_one", .from = "mean(x)", .when = reduces_only_ones, .build = reshape_to_result},
    {.name = "maximum_of_one",
     .from = "reduce_maximum(x)",
     .when = reduces_only_ones,
     .build = reshape_to_result},
    {.name = "minimum_of_one",
     .from = "reduce_minimum(x)",
     .when = reduces_only_ones,
     .build = reshape_to_result},
    {.name = "product_of_one", .from = "product(x)", .when = reduces_only_ones, .build = reshape_to_result},
};

}  // namespace

std::span<const Rule> view_rules() { return kViewRules; }

}  // namespace ingot::core::rewriting
