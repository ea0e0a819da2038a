// SPDX-License-Identifier: Apache-2.0
// Elements in another order or arrangement: shuffles, stacks, grids, diagonals, codes.
#include <algorithm>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/strided.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

void broadcast_tensors(Call& call) {
  const std::vector<core::Value*> values = call.tensors("tensors");
  for (size_t i = 0; i < values.size(); ++i)
    call.give(i, expanded(call, values[i], call.result_meta(i).shape));
}

void one_hot(Call& call) {
  core::Value* x = call.tensor("self");
  const int64_t classes = call.integer("num_classes");
  if (classes < 0) call.refuse("a number of classes that depends on data");
  core::Value* hot = emit(call, ops::equal,
                          {unsqueezed(call, x, x->type.rank()), counting(call, classes, 1, x->type.dtype)});
  call.give(converted(call.graph(), hot, DType::kI64));
}

// Negative indices count from the end.
core::Value* gathered_from_end(Call& call, core::Value* x, core::Value* index, size_t axis) {
  const Term given(call, converted(call.graph(), index, DType::kI64));
  const Term size(call, size_scalar(call.graph(), extent(call, x, axis), DType::kI64));
  return emit(call, ops::gather, {x, (given < 0).choose(given + size, given)},
              ops::Axis{static_cast<int64_t>(axis)});
}
void take_along(Call& call) {
  core::Value *x = call.tensor("self"), *index = call.tensor("indices");
  if (!call.has("dim")) {
    x = reshaped(call, x, {element_count(x->type)});
    index = reshaped(call, index, {element_count(index->type)});
    return call.give(gathered_from_end(call, x, index, 0));
  }
  const size_t axis = call.axis("dim", x->type.rank());
  Shape from = x->type.shape, at = index->type.shape;
  call.require(from.size() == at.size(), "indices of unexpected rank");
  for (size_t i = 0; i < from.size(); ++i) {
    if (i == axis) continue;
    from[i] = at[i] = x->type.shape[i] == Dim(1) ? index->type.shape[i] : x->type.shape[i];
  }
  call.give(gathered_from_end(call, expanded(call, x, from), expanded(call, index, at), axis));
}

// Parts of nearly equal sizes, or between given indices; their sizes are those of the results.
void split_any(Call& call, size_t axis) {
  core::Value* x = call.tensor("self");
  Dim start = 0;
  for (size_t i = 0; i < call.result_count(); ++i) {
    const Shape& part = call.result_meta(i).shape;
    call.require(axis < part.size(), "a result of unexpected rank");
    const Dim end = start + part[axis];
    call.give(i, sliced(call, x, axis, start, end));
    start = end;
  }
}
void tensor_split(Call& call) { split_any(call, call.axis("dim", call.tensor("self")->type.rank())); }

constexpr Converter kRearrangeConverters[] = {
    {"aten.broadcast_tensors.default", broadcast_tensors, kComposed},
    {"aten.one_hot.default", one_hot, kComposed},
    {"aten.take_along_dim.default", take_along, kComposed},
    {"aten.tensor_split.indices", tensor_split, kComposed},
    {"aten.tensor_split.sections", tensor_split, kComposed},
};

}  // namespace

std::span<const Converter> rearrange_converters() { return kRearrangeConverters; }

}  // namespace ingot::core::aten
