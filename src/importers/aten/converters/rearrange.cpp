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

// An image's dims before the last three.
Shape leading_dims(Call& call, const core::Value* image) {
  call.require(image->type.rank() >= 3, "an image without channels");
  return {image->type.shape.begin(), image->type.shape.end() - 3};
}
// [..., C r r, H, W] <-> [..., C, H r, W r].
void pixel_shuffle(Call& call) {
  core::Value* x = call.tensor("self");
  const Dim factor = call.integer("upscale_factor");
  Shape split = leading_dims(call, x), joined = split;
  const size_t lead = split.size();
  const Dim channels = floor_divide(x->type.shape[lead], factor * factor);
  const Dim height = x->type.shape[lead + 1], width = x->type.shape[lead + 2];
  split.insert(split.end(), {channels, factor, factor, height, width});
  joined.insert(joined.end(), {channels, height * factor, width * factor});
  std::vector<int64_t> order = all_axes(lead + 5);
  const auto at = [&](size_t i) { return static_cast<int64_t>(lead + i); };
  std::copy_n(std::vector{at(0), at(3), at(1), at(4), at(2)}.begin(), 5, order.begin() + at(0));
  call.give(reshaped(call, transposed(call, reshaped(call, x, split), order), joined));
}
void pixel_unshuffle(Call& call) {
  core::Value* x = call.tensor("self");
  const Dim factor = call.integer("downscale_factor");
  Shape split = leading_dims(call, x), joined = split;
  const size_t lead = split.size();
  const Dim channels = x->type.shape[lead];
  const Dim height = floor_divide(x->type.shape[lead + 1], factor),
            width = floor_divide(x->type.shape[lead + 2], factor);
  split.insert(split.end(), {channels, height, factor, width, factor});
  joined.insert(joined.end(), {channels * factor * factor, height, width});
  std::vector<int64_t> order = all_axes(lead + 5);
  const auto at = [&](size_t i) { return static_cast<int64_t>(lead + i); };
  std::copy_n(std::vector{at(0), at(2), at(4), at(1), at(3)}.begin(), 5, order.begin() + at(0));
  call.give(reshaped(call, transposed(call, reshaped(call, x, split), order), joined));
}
void channel_shuffle(Call& call) {
  core::Value* x = call.tensor("self");
  const Shape shape = x->type.shape;
  const Dim groups = call.dim("groups");
  const Dim inside = floor_divide(extent(call, x, 1), groups);
  Shape split = shape;
  split[1] = groups;
  split.insert(split.begin() + 2, inside);
  call.give(reshaped(call, swapped(call, reshaped(call, x, split), 1, 2), shape));
}

void flip_axis(Call& call, int64_t axis) {
  call.give(emit(call, ops::flip, {call.tensor("self")}, ops::Axes{{axis}}));
}
void flip_columns(Call& call) { flip_axis(call, 1); }
void flip_rows(Call& call) { flip_axis(call, 0); }
void rotate(Call& call) {
  core::Value* x = call.tensor("self");
  const std::vector<size_t> dims = call.axes_in_order("dims", x->type.rank());
  call.require(dims.size() == 2, "a rotation of other than two dims");
  const int64_t turns = ((call.integer("k") % 4) + 4) % 4;
  const size_t first = dims[0], second = dims[1];
  const auto a = static_cast<int64_t>(first), b = static_cast<int64_t>(second);
  const auto flipped = [&](core::Value* value, std::vector<int64_t> axes) {
    return emit(call, ops::flip, {value}, ops::Axes{std::move(axes)});
  };
  if (turns == 0) return call.give(x);
  if (turns == 2) return call.give(flipped(x, {std::min(a, b), std::max(a, b)}));
  if (turns == 1) return call.give(swapped(call, flipped(x, {b}), first, second));
  call.give(flipped(swapped(call, x, first, second), {b}));
}

// At least `rank` dims, added as in numpy.
core::Value* with_rank(Call& call, core::Value* x, size_t rank) {
  if (x->type.rank() == 0) return reshaped(call, x, Shape(rank, 1));
  if (x->type.rank() == 1 && rank > 1) x = unsqueezed(call, x, 0);
  if (x->type.rank() == 2 && rank > 2) x = unsqueezed(call, x, 2);
  return x;
}
template <size_t kRank>
void at_least(Call& call) {
  call.give(with_rank(call, call.tensor("self"), kRank));
}
template <size_t kRank>
void each_at_least(Call& call) {
  const std::vector<core::Value*> values = call.tensors("tensors");
  for (size_t i = 0; i < values.size(); ++i) call.give(i, with_rank(call, values[i], kRank));
}
template <size_t kRank, size_t kAxis>
void stacked(Call& call) {
  std::vector<core::Value*> values = promoted_tensors(call);
  for (core::Value*& value : values) value = with_rank(call, value, kRank);
  const size_t axis = kRank == 1 && values[0]->type.rank() > 1 ? 1 : kAxis;  // hstack of matrices
  call.give(concatenated(call, std::move(values), axis));
}
void column_stack(Call& call) {
  std::vector<core::Value*> values = promoted_tensors(call);
  for (core::Value*& value : values) {
    if (value->type.rank() < 2) value = reshaped(call, value, {element_count(value->type), 1});
  }
  call.give(concatenated(call, std::move(values), 1));
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
void trace(Call& call) {
  const Term diagonal(call, diagonal_of(call, call.tensor("self"), 0, 1, 0));
  const DType dtype = is_floating(diagonal.dtype()) ? diagonal.dtype() : DType::kI64;
  call.give(diagonal.to(dtype).reduce(ops::sum, {0}));
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
void split_rows(Call& call) { split_any(call, 0); }
void split_columns(Call& call) { split_any(call, call.tensor("self")->type.rank() == 1 ? 0 : 1); }
void split_depth(Call& call) { split_any(call, 2); }

void is_in(Call& call) {
  const DType dtype = promoted(call, {"elements", "test_elements"});
  Term x(call, operand(call, "elements", dtype)), test(call, operand(call, "test_elements", dtype));
  test = {call, reshaped(call, test, {element_count(test.operator core::Value*()->type)})};
  x = {call, unsqueezed(call, x, x.shape().size())};
  const Term any = Term(call, emit(call, ops::equal, {x, test}))
                       .reduce(ops::any, {static_cast<int64_t>(x.shape().size()) - 1});
  call.give(call.flag("invert") ? !any : any);
}

constexpr Converter kRearrangeConverters[] = {
    {"aten.atleast_1d.Sequence", each_at_least<1>, kComposed},
    {"aten.atleast_1d.default", at_least<1>, kComposed},
    {"aten.atleast_2d.Sequence", each_at_least<2>, kComposed},
    {"aten.atleast_2d.default", at_least<2>, kComposed},
    {"aten.atleast_3d.Sequence", each_at_least<3>, kComposed},
    {"aten.atleast_3d.default", at_least<3>, kComposed},
    {"aten.block_diag.default", block_diagonal, kComposed},
    {"aten.broadcast_tensors.default", broadcast_tensors, kComposed},
    {"aten.channel_shuffle.default", channel_shuffle, kComposed},
    {"aten.column_stack.default", column_stack, kComposed},
    {"aten.diag.default", diagonal_matrix, kComposed},
    {"aten.diag_embed.default", embed_diagonal, kComposed},
    {"aten.diagflat.default", flat_diagonal_matrix, kComposed},
    {"aten.dsplit.array", split_depth, kComposed},
    {"aten.dsplit.int", split_depth, kComposed},
    {"aten.dstack.default", stacked<3, 2>, kComposed},
    {"aten.fliplr.default", flip_columns, kComposed},
    {"aten.flipud.default", flip_rows, kComposed},
    {"aten.hsplit.array", split_columns, kComposed},
    {"aten.hsplit.int", split_columns, kComposed},
    {"aten.hstack.default", stacked<1, 0>, kComposed},
    {"aten.isin.Tensor_Tensor", is_in, kComposed},
    {"aten.meshgrid.default", mesh_grid, kComposed},
    {"aten.meshgrid.indexing", mesh_grid, kComposed},
    {"aten.native_channel_shuffle.default", channel_shuffle, kComposed},
    {"aten.one_hot.default", one_hot, kComposed},
    {"aten.pixel_shuffle.default", pixel_shuffle, kComposed},
    {"aten.pixel_unshuffle.default", pixel_unshuffle, kComposed},
    {"aten.rot90.default", rotate, kComposed},
    {"aten.row_stack.default", stacked<2, 0>, kComposed},
    {"aten.take_along_dim.default", take_along, kComposed},
    {"aten.tensor_split.indices", tensor_split, kComposed},
    {"aten.tensor_split.sections", tensor_split, kComposed},
    {"aten.trace.default", trace, kComposed},
    {"aten.vsplit.array", split_rows, kComposed},
    {"aten.vsplit.int", split_rows, kComposed},
    {"aten.vstack.default", stacked<2, 0>, kComposed},
};

}  // namespace

std::span<const Converter> rearrange_converters() { return kRearrangeConverters; }

}  // namespace ingot::core::aten
