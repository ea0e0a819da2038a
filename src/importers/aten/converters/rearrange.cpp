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

// At least `rank` dims, added as in numpy.
core::Value* with_rank(Call& call, core::Value* x, size_t rank) {
  if (x->type.rank() == 0) return reshaped(call, x, Shape(rank, 1));
  if (x->type.rank() == 1 && rank > 1) x = unsqueezed(call, x, 0);
  if (x->type.rank() == 2 && rank > 2) x = unsqueezed(call, x, 2);
  return x;
}
void block_diagonal(Call& call) {
  std::vector<core::Value*> values = promoted_tensors(call), rows;
  Dim width = 0, before = 0;
  for (core::Value*& value : values) {
    value = with_rank(call, value, 2);
    width = width + extent(call, value, 1);
  }
  for (core::Value* value : values) {
    const Dim after = width - before - value->type.shape[1];
    rows.push_back(emit(call, ops::pad, {value}, ops::Pad{.low = {0, before}, .high = {0, after}}));
    before = before + value->type.shape[1];
  }
  call.give(concatenated(call, std::move(rows), 0));
}

void broadcast_tensors(Call& call) {
  const std::vector<core::Value*> values = call.tensors("tensors");
  for (size_t i = 0; i < values.size(); ++i)
    call.give(i, expanded(call, values[i], call.result_meta(i).shape));
}
void mesh_grid(Call& call) {
  std::vector<core::Value*> values = call.tensors("tensors");
  Shape shape;
  for (const core::Value* value : values) shape.push_back(element_count(value->type));
  const bool swaps = call.text("indexing") == "xy" && values.size() > 1;
  for (size_t i = 0; i < values.size(); ++i) {
    Shape along(values.size(), 1);
    along[i] = shape[i];
    core::Value* grid = expanded(call, reshaped(call, values[i], along), shape);
    call.give(i, swaps ? swapped(call, grid, 0, 1) : grid);
  }
}

void one_hot(Call& call) {
  core::Value* x = call.tensor("self");
  const int64_t classes = call.integer("num_classes");
  if (classes < 0) call.refuse("a number of classes that depends on data");
  core::Value* hot = emit(call, ops::equal,
                          {unsqueezed(call, x, x->type.rank()), counting(call, classes, 1, x->type.dtype)});
  call.give(converted(call.graph(), hot, DType::kI64));
}

// Creates a diagonal: dims `first` and `second` of the result, zeros elsewhere.
core::Value* embedded(Call& call, core::Value* x, int64_t offset, size_t first, size_t second) {
  const size_t rank = x->type.rank() + 1;
  call.require(rank >= 2 && first != second, "a diagonal of one dim");
  // Row i contains element i, or i + offset if the diagonal is below.
  const Dim before = maximum(Dim(0) - Dim(offset), 0), after = maximum(offset, 0);
  const Dim size = x->type.shape.back() + before + after;
  core::Value* rows = unsqueezed(call, counting(call, size), 1);
  rows = emit(call, ops::add, {rows, scalar(call.graph(), static_cast<double>(offset), DType::kI64)});
  core::Value* on = emit(call, ops::equal, {rows, counting(call, size)});
  ops::Pad pad{.low = std::vector<Dim>(rank - 1, 0), .high = std::vector<Dim>(rank - 1, 0)};
  pad.low.back() = before;
  pad.high.back() = after;
  if (offset != 0) x = emit(call, ops::pad, {x}, pad);
  x = unsqueezed(call, x, rank - 1);
  x = emit(call, ops::select, {on, x, scalar(call.graph(), 0, x->type.dtype)});
  std::vector<int64_t> order(rank, -1);
  order[first] = static_cast<int64_t>(rank) - 2;
  order[second] = static_cast<int64_t>(rank) - 1;
  int64_t next = 0;
  for (int64_t& axis : order) axis = axis < 0 ? next++ : axis;
  return transposed(call, x, std::move(order));
}
void embed_diagonal(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t rank = x->type.rank() + 1;
  call.give(embedded(call, x, call.integer("offset"), call.axis("dim1", rank), call.axis("dim2", rank)));
}
void diagonal_matrix(Call& call) {
  core::Value* x = call.tensor("self");
  const int64_t offset = call.integer("diagonal");
  call.give(x->type.rank() == 1 ? embedded(call, x, offset, 0, 1) : diagonal_of(call, x, 0, 1, offset));
}
void flat_diagonal_matrix(Call& call) {
  core::Value* x = call.tensor("self");
  x = reshaped(call, x, {element_count(x->type)});
  call.give(embedded(call, x, call.integer("offset"), 0, 1));
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
    {"aten.block_diag.default", block_diagonal, kComposed},
    {"aten.broadcast_tensors.default", broadcast_tensors, kComposed},
    {"aten.diag.default", diagonal_matrix, kComposed},
    {"aten.diag_embed.default", embed_diagonal, kComposed},
    {"aten.diagflat.default", flat_diagonal_matrix, kComposed},
    {"aten.meshgrid.default", mesh_grid, kComposed},
    {"aten.meshgrid.indexing", mesh_grid, kComposed},
    {"aten.one_hot.default", one_hot, kComposed},
    {"aten.take_along_dim.default", take_along, kComposed},
    {"aten.tensor_split.indices", tensor_split, kComposed},
    {"aten.tensor_split.sections", tensor_split, kComposed},
};

}  // namespace

std::span<const Converter> rearrange_converters() { return kRearrangeConverters; }

}  // namespace ingot::core::aten
