// SPDX-License-Identifier: Apache-2.0
// Segments of a line: those that lengths or offsets give, and runs of equal elements.
#include <cmath>
#include <limits>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/search_sorted.h"
#include "ops/sort.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

// The value of an empty segment, and where a reduction begins.
double neutral_element(Call& call, const std::string& reduce) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (reduce == "sum" || reduce == "mean") return 0;
  if (reduce == "prod") return 1;
  if (reduce == "max") return -kInfinity;
  call.require(reduce == "min", "an unknown reduction");
  return kInfinity;
}

// Where each segment of a line ends, and its length: i64[lines, segments], of the dims before the axis.
struct Bounds {
  Term ends, lengths;
};
Bounds bounds_of(Call& call) {
  const bool has_lengths = call.has("lengths");
  core::Value* given = converted(call.graph(), call.tensor(has_lengths ? "lengths" : "offsets"), DType::kI64);
  call.require(given->type.rank() > 0, "segments without a dim");
  const size_t last = given->type.rank() - 1;
  const ops::Axis axis{static_cast<int64_t>(last)};
  if (has_lengths) return {Term(call, emit(call, ops::cumulative_sum, {given}, axis)), Term(call, given)};
  const Dim count = given->type.shape[last];
  const Term ends(call, sliced(call, given, last, 1, count));
  return {ends, ends - Term(call, sliced(call, given, last, 0, count - 1))};
}
core::Value* with_dims_behind(Call& call, core::Value* value, size_t rank) {
  Shape shape = value->type.shape;
  shape.resize(rank, 1);
  return reshaped(call, value, shape);
}

// Elements after the last segment are collected in one more, which is cut off.
void segment_reduce(Call& call) {
  core::Value* x = call.tensor("data");
  const std::string reduce = call.text("reduce");
  const Bounds bounds = bounds_of(call);
  const size_t axis = bounds.ends.shape().size() - 1, rank = x->type.rank();
  call.require(axis < rank && call.axis("axis", rank) == axis, "segments along another axis than the first");
  const Dim segments = bounds.ends.shape()[axis];
  const bool has_initial = call.has("initial");
  const double initial = has_initial ? call.number("initial") : neutral_element(call, reduce);
  Shape shape = x->type.shape;
  const Shape lines(shape.begin(), shape.begin() + static_cast<ptrdiff_t>(axis) + 1);
  core::Value* segment =
      emit(call, ops::search_sorted, {bounds.ends, expanded(call, counting(call, shape[axis]), lines)},
           ops::SearchSorted{true, ops::SearchSorted::kMostSteps});
  shape[axis] = segments + 1;
  const std::string combine = reduce == "mean"                     ? "sum"
                              : reduce == "max" || reduce == "min" ? "a" + reduce
                                                                   : reduce;
  core::Value* reduced =
      emit(call, ops::scatter_reduce,
           {filled(call, shape, initial, x->type.dtype), with_dims_behind(call, segment, rank), x},
           ops::ScatterReduce{.axis = static_cast<int64_t>(axis), .reduce = combine, .include_self = true});
  const Term result(call, sliced(call, reduced, axis, 0, segments));
  if (reduce != "mean") return call.give(result);
  const Term lengths(call, with_dims_behind(call, bounds.lengths.to(x->type.dtype), rank));
  const Term empty = result.constant(has_initial ? initial : std::nan(""));
  call.give(equal(lengths, 0).choose(empty, result / lengths));
}

// The last element of the longest run of equal elements of the sorted line, of the first such run.
void mode(Call& call) {
  core::Value* given = call.tensor("self");
  const bool is_scalar = given->type.rank() == 0;
  core::Value* x = is_scalar ? reshaped(call, given, {1}) : given;
  const size_t axis = call.axis("dim", given->type.rank());
  const auto signed_axis = static_cast<int64_t>(axis);
  const Dim size = x->type.shape[axis];
  call.require(range_of(size, call.graph().symbols).min > 0, "the mode of lines that may be empty");
  const core::Node* sorted = call.graph().add(ops::sort, {x}, ops::Sort{signed_axis, false});
  core::Value* values = sorted->results[0];
  core::Value* changes = emit(call, ops::not_equal,
                              {sliced(call, values, axis, 1, size), sliced(call, values, axis, 0, size - 1)});
  Shape single = x->type.shape, along(x->type.rank(), 1);
  single[axis] = 1;
  along[axis] = size;
  core::Value* edge = filled(call, single, 1, DType::kBool);
  const Term begins(call, concatenated(call, {edge, changes}, axis));
  const Term ends(call, concatenated(call, {changes, edge}, axis));
  const Term position(call, reshaped(call, counting(call, size), along));
  const Term begin(call, emit(call, ops::cumulative_maximum, {begins.choose(position, position.constant(0))},
                              ops::Axis{signed_axis}));
  const Term length = ends.choose(position - begin + 1, position.constant(0));
  core::Value* best = emit(call, ops::argmax, {length}, ops::ArgReduce{signed_axis, true});
  const bool keeps = call.flag("keepdim") && !is_scalar;
  for (const size_t i : {0, 1}) {
    core::Value* chosen = emit(call, ops::gather, {sorted->results[i], best}, ops::Axis{signed_axis});
    call.give(i, keeps ? chosen : without_axes(call, chosen, {signed_axis}));
  }
}

constexpr Converter kSegmentConverters[] = {
    {"aten.mode.default", mode},
    {"aten.segment_reduce.default", segment_reduce},
};

}  // namespace

std::span<const Converter> segments_converters() { return kSegmentConverters; }

}  // namespace ingot::core::aten
