// SPDX-License-Identifier: Apache-2.0
// Runs of equal elements of a line.
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/sort.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

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
};

}  // namespace

std::span<const Converter> segments_converters() { return kSegmentConverters; }

}  // namespace ingot::core::aten
