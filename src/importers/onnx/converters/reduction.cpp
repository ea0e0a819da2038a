// SPDX-License-Identifier: Apache-2.0
// Reductions, scans and searches along axes.
#include <algorithm>
#include <array>
#include <limits>

#include "importers/onnx/converters/converters.h"
#include "ops/axis.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "ops/statistics.h"
#include "ops/view.h"

namespace ingot::core::onnx {
namespace {

// Since opset 18 (sums: 13) the axes are an input.
std::vector<int64_t> reduced_axes(Call& call, size_t rank) {
  const auto given = call.given_integers("axes", 1);
  const bool is_empty = !given || given->empty();
  if (is_empty) return call.flag("noop_with_empty_axes") ? std::vector<int64_t>{} : all_axes(rank);
  std::vector<int64_t> axes;
  for (const size_t axis : call.axes(*given, rank)) axes.push_back(static_cast<int64_t>(axis));
  std::ranges::sort(axes);
  return axes;
}

Value* reduced(Call& call, const Op& op, Value* x) {
  const ops::Reduce reduce{reduced_axes(call, x->type.rank()), call.flag("keepdims", true)};
  return reduce.axes.empty() ? x : call.graph().call(op, {x}, reduce);
}

void convert_reduction(Call& call) { call.give(reduced(call, call.op(), call.tensor(0))); }

// The extremum of no elements.
Value* extremum_of_none(Call& call, const ops::Reduce& reduce, const Value* x, bool is_maximum) {
  Shape shape;
  for (size_t i = 0; i < x->type.rank(); ++i) {
    const bool goes = std::ranges::find(reduce.axes, static_cast<int64_t>(i)) != reduce.axes.end();
    if (goes && !reduce.keep_dims) continue;
    shape.push_back(goes ? Dim(1) : x->type.shape[i]);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  return filled(call.graph(), std::move(shape), is_maximum ? -infinity : infinity, x->type.dtype);
}

// Maxima and minima of bools are whether any or all hold.
void convert_extremum(Call& call) {
  Value* x = call.tensor(0);
  const bool is_maximum = &call.op() == &ops::reduce_maximum;
  if (x->type.dtype == DType::kBool) return call.give(reduced(call, is_maximum ? ops::any : ops::all, x));
  const ops::Reduce reduce{reduced_axes(call, x->type.rank()), call.flag("keepdims", true)};
  const bool is_empty = std::ranges::any_of(
      reduce.axes, [&](int64_t axis) { return x->type.shape[static_cast<size_t>(axis)] == Dim(0); });
  if (is_empty && is_floating(x->type.dtype)) return call.give(extremum_of_none(call, reduce, x, is_maximum));
  convert_reduction(call);
}

void convert_reduced_mean(Call& call) {
  Value* x = call.tensor(0);
  if (!is_floating(x->type.dtype)) refuse("averages of integers");
  convert_reduction(call);
}

void convert_l1(Call& call) {
  call.give(reduced(call, ops::sum, Term(call.graph(), call.tensor(0)).apply(ops::absolute)));
}

void convert_sum_square(Call& call) {
  const Term x(call.graph(), call.tensor(0));
  call.give(reduced(call, ops::sum, x * x));
}

void convert_l2(Call& call) {
  const Term x(call.graph(), call.tensor(0));
  if (!is_floating(static_cast<Value*>(x)->type.dtype)) refuse("norms of integers");
  call.give(Term(call.graph(), reduced(call, ops::sum, x * x)).apply(ops::square_root));
}

void convert_log_sum(Call& call) {
  call.give(Term(call.graph(), reduced(call, ops::sum, call.tensor(0))).apply(ops::log));
}

// The first extremum, or the last: then of the reversed dim.
void convert_arg(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t axis = call.axis(call.attribute_integer("axis", 0), x->type.rank());
  const ops::ArgReduce reduce{static_cast<int64_t>(axis), call.flag("keepdims", true)};
  if (!call.flag("select_last_index")) return call.give(graph.call(call.op(), {x}, reduce));
  const Dim last = x->type.shape[axis] - 1;
  x = graph.call(ops::flip, {x}, ops::Axes{{reduce.axis}});
  const Term from_end(graph, graph.call(call.op(), {x}, reduce));
  call.give(Term(graph, size_scalar(graph, last, DType::kI64)) - from_end);
}

// Exclusive: each element is what the ones before it add up to, with a zero in front.
void convert_cumulative_sum(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t axis = call.axis(call.integer(1), x->type.rank());
  const auto along = static_cast<int64_t>(axis);
  const bool is_reversed = call.flag("reverse");
  if (is_reversed) x = graph.call(ops::flip, {x}, ops::Axes{{along}});
  if (call.flag("exclusive")) {
    const Dim size = x->type.shape[axis];
    Shape first = x->type.shape;
    first[axis] = 1;
    Value* shifted = concatenated(graph, {filled(graph, first, 0, x->type.dtype), x}, axis);
    x = sliced(graph, shifted, axis, 0, size);
  }
  x = graph.call(ops::cumulative_sum, {x}, ops::Axis{along});
  call.give(is_reversed ? graph.call(ops::flip, {x}, ops::Axes{{along}}) : x);
}

void convert_top_k(Call& call) {
  Value* x = call.tensor(0);
  const auto axis = static_cast<int64_t>(call.axis(call.attribute_integer("axis", -1), x->type.rank()));
  const int64_t count = call.integer(1);
  if (count < 0) refuse_node("a negative number of elements");
  const Node* node = call.graph().add(ops::top_k, {x}, ops::TopK{axis, count, call.flag("largest", true)});
  call.give(0, node->results[0]);
  call.give(1, node->results[1]);
}

constexpr auto kReduction = std::to_array<Converter>({
    {"ArgMax", convert_arg, &ops::argmax},
    {"ArgMin", convert_arg, &ops::argmin},
    {"CumSum", convert_cumulative_sum, nullptr, 11},
    {"ReduceL1", convert_l1},
    {"ReduceL2", convert_l2},
    {"ReduceLogSum", convert_log_sum},
    {"ReduceLogSumExp", convert_reduction, &ops::log_sum_exp},
    {"ReduceMax", convert_extremum, &ops::reduce_maximum},
    {"ReduceMean", convert_reduced_mean, &ops::mean},
    {"ReduceMin", convert_extremum, &ops::reduce_minimum},
    {"ReduceProd", convert_reduction, &ops::product},
    {"ReduceSum", convert_reduction, &ops::sum},
    {"ReduceSumSquare", convert_sum_square},
    {"TopK", convert_top_k, nullptr, 10},
});

}  // namespace

std::span<const Converter> reduction_converters() { return kReduction; }

}  // namespace ingot::core::onnx
