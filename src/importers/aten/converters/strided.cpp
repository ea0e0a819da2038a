// SPDX-License-Identifier: Apache-2.0
// Diagonals, sliding windows of one dim, and views by strides.
#include <algorithm>
#include <functional>
#include <optional>
#include <ranges>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/axis.h"
#include "ops/size_condition.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

// A tensor with dims `dim1` and `dim2` moved to its end and merged: then a diagonal is a slice.
struct Plane {
  std::vector<int64_t> order;  // moves the two dims
  Shape moved, joined;
  ops::Slice diagonal;
};
Plane plane_of(Call& call, const core::Value* x, size_t first, size_t second, int64_t offset) {
  const size_t rank = x->type.rank();
  call.require(rank >= 2 && first != second, "a diagonal of one dim");
  Plane plane;
  for (size_t i = 0; i < rank; ++i) {
    if (i != first && i != second) plane.order.push_back(static_cast<int64_t>(i));
  }
  plane.order.push_back(static_cast<int64_t>(first));
  plane.order.push_back(static_cast<int64_t>(second));
  for (const int64_t axis : plane.order) plane.moved.push_back(x->type.shape[static_cast<size_t>(axis)]);
  const Dim rows = plane.moved[rank - 2], columns = plane.moved[rank - 1];
  const auto step = (columns + 1).constant();
  if (!step) call.refuse("a diagonal of a number of columns that is not known");
  plane.joined = plane.moved;
  plane.joined.pop_back();
  plane.joined.back() = rows * columns;
  const Dim high = rows + Dim(std::min<int64_t>(offset, 0)),
            wide = columns - Dim(std::max<int64_t>(offset, 0));
  const Dim count = maximum(smaller(high, wide, call.graph().symbols), 0);
  const Dim start = offset >= 0 ? Dim(offset) : (Dim(0) - Dim(offset)) * columns;
  const bool is_empty = count == Dim(0);
  plane.diagonal = {static_cast<int64_t>(rank) - 2, is_empty ? Dim(0) : start,
                    is_empty ? Dim(0) : start + (count - 1) * Dim(*step) + 1, *step};
  return plane;
}
Plane plane_of(Call& call, const core::Value* x) {
  const size_t rank = x->type.rank();
  return plane_of(call, x, call.axis("dim1", rank), call.axis("dim2", rank), call.integer("offset"));
}
void diagonal(Call& call) {
  core::Value* x = call.tensor(call.has("A") ? "A" : "self");
  const Plane plane = plane_of(call, x);
  x = reshaped(call, transposed(call, x, plane.order), plane.joined);
  const ops::Slice& slice = plane.diagonal;
  call.give(sliced(call, x, static_cast<size_t>(slice.axis), slice.start, slice.end, slice.step));
}
void diagonal_scatter(Call& call) {
  core::Value* x = call.tensor("self");
  const Plane plane = plane_of(call, x);
  core::Value* joined = reshaped(call, transposed(call, x, plane.order), plane.joined);
  core::Value* source = converted(call.graph(), call.tensor("src"), x->type.dtype);
  joined = emit(call, ops::slice_scatter, {joined, source}, plane.diagonal);
  call.give(transposed(call, reshaped(call, joined, plane.moved), inverse_order(plane.order)));
}

core::Value* windows_of(Call& call, core::Value* x, size_t axis, int64_t size, int64_t step) {
  call.require(size >= 0 && step > 0, "empty windows");
  ops::add_check(call.graph(), CheckKind::kBounds, at_most(size, x->type.shape[axis]), "unfold");
  const Dim count = floor_divide(x->type.shape[axis] - Dim(size), step) + 1;
  core::Value* starts = reshaped(call, counting(call, count, step), {count, 1});
  core::Value* places = emit(call, ops::add, {starts, counting(call, size)});
  core::Value* windows = emit(call, ops::take, {x, places}, ops::Axis{static_cast<int64_t>(axis)});
  std::vector<int64_t> order = all_axes(windows->type.rank());
  std::rotate(order.begin() + static_cast<ptrdiff_t>(axis) + 1,
              order.begin() + static_cast<ptrdiff_t>(axis) + 2, order.end());
  return transposed(call, windows, order);
}
void unfold(Call& call) {
  core::Value* x = call.tensor("self");
  const bool is_scalar = x->type.rank() == 0;
  const size_t axis = call.axis("dimension", x->type.rank());
  if (is_scalar) x = reshaped(call, x, {1});
  core::Value* windows = windows_of(call, x, axis, call.integer("size"), call.integer("step"));
  call.give(is_scalar ? without_axes(call, windows, {0}) : windows);
}

// Whether this value's first element is known to be the first of its memory.
bool starts_its_memory(const core::Value* value) {
  const auto keeps_start = [](const Op& op) {
    return op.traits.has(Trait::kKeepsOrder) || &op == &ops::transpose;
  };
  while (value->producer != nullptr && keeps_start(*value->producer->op))
    value = value->producer->operands[0];
  return value->producer != nullptr && !value->producer->op->traits.has(Trait::kView);
}
bool is_filled(const core::Value* value) {  // with one number
  const core::Node* node = value->producer;
  if (node != nullptr && node->op == &ops::expand) node = node->operands[0]->producer;
  return node != nullptr && node->op == &ops::full;
}
bool is_dense(const TensorMeta& meta, const std::vector<int64_t>& order) {
  Dim expected = 1;
  for (const int64_t axis : std::views::reverse(order)) {
    const Dim &size = meta.shape[static_cast<size_t>(axis)],
              &stride = meta.strides[static_cast<size_t>(axis)];
    if (size != Dim(1) && stride != expected) return false;
    expected = expected * size;
  }
  return true;
}
// The order of dims from the outermost in memory, without gaps; nullopt if there are gaps.
std::optional<std::vector<int64_t>> memory_order(const TensorMeta& meta) {
  if (meta.strides.size() != meta.shape.size()) return std::nullopt;
  std::vector<int64_t> order = all_axes(meta.shape.size());
  if (is_dense(meta, order)) return order;
  if (!std::ranges::all_of(meta.strides, &Dim::is_constant)) return std::nullopt;
  const auto stride = [&](int64_t axis) { return *meta.strides[static_cast<size_t>(axis)].constant(); };
  std::ranges::stable_sort(order, std::greater(), stride);
  return is_dense(meta, order) ? std::optional(order) : std::nullopt;
}
// A tensor that is dense in memory as one line of its elements there, and the places of a view by strides.
struct StridedView {
  std::vector<int64_t> order;  // of the dims in memory
  Shape shape;                 // of the tensor in that order
  core::Value *line, *places;
};
StridedView strided_view(Call& call) {
  core::Value* x = call.tensor("self");
  const auto order = memory_order(call.tensor_meta("self"));
  if (!order) call.refuse("strides over memory that is not dense");
  if (call.has("storage_offset") && !starts_its_memory(x))
    call.refuse("an offset into the memory of an input or a view");
  x = transposed(call, x, *order);
  const std::vector<Dim> size = call.dims("size");
  const std::vector<int64_t> stride = call.integers("stride");
  call.require(stride.size() == size.size(), "another number of strides than sizes");
  const Dim offset = call.has("storage_offset") ? call.dim("storage_offset") : Dim(0);
  Dim beyond = offset + 1;
  for (size_t i = 0; i < size.size(); ++i) beyond = beyond + (size[i] - 1) * Dim(stride[i]);
  const Dim elements = element_count(x->type);
  if (range_of(elements - beyond, call.graph().symbols).min < 0 && product(size) != Dim(0)) {
    const bool depends_on_sizes = !beyond.is_constant() || !elements.is_constant();
    call.require(depends_on_sizes, "elements that are outside of the tensor");
    ops::add_check(call.graph(), CheckKind::kBounds,
                   either(at_most(beyond, elements), compare(Predicate::Kind::kEqual, product(size), 0)),
                   "as_strided");
  }
  core::Value* places = size_scalar(call.graph(), offset, DType::kI64);
  for (size_t i = 0; i < size.size(); ++i) {
    Shape along(size.size(), 1);
    along[i] = size[i];
    places = emit(call, ops::add, {places, reshaped(call, counting(call, size[i], stride[i]), along)});
  }
  return {*order, x->type.shape, reshaped(call, x, {elements}), places};
}
void as_strided(Call& call) {
  const StridedView view = strided_view(call);
  call.give(emit(call, ops::take, {view.line, view.places}, ops::Axis{0}));
}
// Where places repeat, one of the values is written, as in torch.
void as_strided_scatter(Call& call) {
  const StridedView view = strided_view(call);
  const Dim count = element_count(view.places->type);
  core::Value* source = converted(call.graph(), call.tensor("src"), view.line->type.dtype);
  core::Value* written =
      emit(call, ops::scatter,
           {view.line, reshaped(call, view.places, {count}), reshaped(call, source, {count})}, ops::Axis{0});
  call.give(transposed(call, reshaped(call, written, view.shape), inverse_order(view.order)));
}

// The first elements in memory, in a shape that may have fewer or more; nothing says what further ones are,
// so they are 0.
void resize(Call& call) {
  core::Value* x = call.tensor("self");
  const auto order = memory_order(call.tensor_meta("self"));
  if (!order) call.refuse("a new size of memory that is not dense");
  const TensorMeta& result = call.result_meta();
  const bool is_row_major = result.strides.empty() || is_dense(result, all_axes(result.shape.size()));
  call.require(is_row_major, "a new size with a memory format");
  const Shape shape = call.dims("size");
  const Dim before = element_count(x->type), after = product(shape);
  const auto& symbols = call.graph().symbols;
  core::Value* line = reshaped(call, transposed(call, x, *order), {before});
  if (range_of(before - after, symbols).min >= 0) {
    line = sliced(call, line, 0, 0, after, 1);
  } else {
    if (range_of(after - before, symbols).min < 0)
      call.refuse("a new size that may be less or more than the old one");
    if (!is_filled(x) && !starts_its_memory(x)) call.refuse("a larger size of an input or a view");
    line = concatenated(call, {line, filled(call, {after - before}, 0, x->type.dtype)}, 0);
  }
  call.give(reshaped(call, line, shape));
}

constexpr Converter kStridedConverters[] = {
    {"aten.as_strided.default", as_strided},
    {"aten.as_strided_copy.default", as_strided},
    {"aten.as_strided_scatter.default", as_strided_scatter},
    {"aten.diagonal.default", diagonal},
    {"aten.diagonal_copy.default", diagonal},
    {"aten.diagonal_scatter.default", diagonal_scatter},
    {"aten.linalg_diagonal.default", diagonal},
    {"aten.resize.default", resize},
    {"aten.unfold.default", unfold},
    {"aten.unfold_copy.default", unfold},
};

}  // namespace

std::span<const Converter> strided_converters() { return kStridedConverters; }

}  // namespace ingot::core::aten
