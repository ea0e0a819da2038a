// SPDX-License-Identifier: Apache-2.0
// Rules that move elements: views, reads by index, and writes in place.
#include <algorithm>
#include <numeric>

#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/index.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "tests/random/rules.h"

namespace ingot::core::random_graphs {
namespace {

size_t random_axis(Maker& maker, const Value* x) {
  return static_cast<size_t>(maker.number(0, static_cast<int64_t>(x->type.rank()) - 1));
}

ops::Slice random_slice(Maker& maker, const Value* x) {
  const size_t axis = random_axis(maker, x);
  const Dim& size = x->type.shape[axis];
  const int64_t least = maker.least(size);
  ops::Slice slice{.axis = static_cast<int64_t>(axis), .start = maker.number(0, least), .end = least};
  slice.end = maker.number(*slice.start.constant(), least);
  if (maker.chance(0.4)) slice.end = size - Dim(maker.number(0, least - *slice.start.constant()));
  if (maker.chance(0.3)) slice.step = maker.number(2, 3);
  return slice;
}

bool add_transpose(Maker& maker, Value* x) {
  ops::Permutation permutation;
  permutation.order.resize(x->type.rank());
  std::iota(permutation.order.begin(), permutation.order.end(), 0);
  std::ranges::shuffle(permutation.order, maker.random());
  return maker.add(ops::transpose, {x}, permutation) != nullptr;
}

bool add_expand(Maker& maker, Value* x) {
  Shape shape = x->type.shape;
  for (Dim& dim : shape) {
    if (dim == Dim(1) && maker.chance(0.7)) dim = maker.number(1, 9);
  }
  if (shape.size() < 4 && maker.chance(0.6)) shape.insert(shape.begin(), maker.number(1, 5));
  return maker.add(ops::expand, {x}, ops::NewShape{shape}) != nullptr;
}

// Joins two neighbouring dims, splits one, drops ones or adds one.
bool add_reshape(Maker& maker, Value* x) {
  Shape shape = x->type.shape;
  const size_t axis = random_axis(maker, x);
  const auto place = shape.begin() + static_cast<ptrdiff_t>(axis);
  if (axis + 1 < shape.size() && maker.chance(0.5)) {
    shape[axis] = shape[axis] * shape[axis + 1];
    shape.erase(place + 1);
  } else if (const auto size = shape[axis].constant(); size && *size % 2 == 0 && maker.chance(0.7)) {
    shape[axis] = *size / 2;
    shape.insert(place + (maker.chance(0.5) ? 1 : 0), 2);
  } else if (maker.chance(0.5)) {
    std::erase(shape, Dim(1));
  } else {
    shape.insert(place, 1);
  }
  return maker.add(ops::reshape, {x}, ops::NewShape{shape}) != nullptr;
}

bool add_pad(Maker& maker, Value* x) {
  constexpr std::string_view kModes[] = {"constant", "constant", "reflect", "replicate", "circular"};
  ops::Pad pad{.value = static_cast<double>(maker.number(-1, 1)),
               .mode = std::string(pick(maker.random(), kModes))};
  for (const Dim& size : x->type.shape) {
    const int64_t most = std::min<int64_t>(pad.mode == "constant" ? 3 : maker.least(size) - 1, 3);
    pad.low.emplace_back(most > 0 && maker.chance(0.5) ? maker.number(0, most) : 0);
    pad.high.emplace_back(most > 0 && maker.chance(0.5) ? maker.number(0, most) : 0);
  }
  return maker.add(ops::pad, {x}, pad) != nullptr;
}

bool add_concat(Maker& maker, Value* x) {
  const size_t axis = random_axis(maker, x);
  std::vector<Value*> parts = {x};
  for (int64_t count = maker.number(1, 2); count > 0; --count) {
    TensorType type = x->type;
    if (maker.chance(0.5)) type.shape[axis] = maker.number(1, 6);
    parts.push_back(maker.partner(type));
  }
  std::ranges::shuffle(parts, maker.random());
  return maker.add(ops::concat, parts, ops::Axis{static_cast<int64_t>(axis)}) != nullptr;
}

Value* indices(Maker& maker, Shape shape, const Dim& bound, bool distinct, size_t axis = 0) {
  const DType dtype = maker.chance(0.8) ? DType::kI64 : DType::kI32;
  const Fill fill{
      .kind = distinct ? Fill::Kind::kDistinct : Fill::Kind::kIndex, .bound = bound, .axis = axis};
  return maker.source({dtype, std::move(shape), {}}, fill);
}

// What is written: sometimes stored in another order than it is shaped.
Value* written(Maker& maker, const Value* x, Shape shape) {
  const TensorType type{x->type.dtype, std::move(shape), {}};
  return type.rank() >= 2 && maker.chance(0.4) ? maker.transposed_source(type) : maker.partner(type);
}

// So many indices as fit a dim at every size.
int64_t index_count(Maker& maker, const Dim& size) {
  return maker.number(1, std::min<int64_t>(maker.least(size), 5));
}

}  // namespace

bool add_view(Maker& maker) {
  Value* x = maker.any(1);
  switch (maker.number(0, 8)) {
    case 0:
    case 1:
    case 2:
      return add_transpose(maker, x);
    case 3:
      return add_expand(maker, x);
    case 4:
      return add_reshape(maker, x);
    case 5:
      return add_pad(maker, x);
    case 6:
      return add_concat(maker, x);
    case 7:
      return maker.add(ops::roll, {x},
                       ops::Roll{static_cast<int64_t>(random_axis(maker, x)), maker.number(-2, 5)}) !=
             nullptr;
    default:
      return maker.add(ops::slice, {x}, random_slice(maker, x)) != nullptr;
  }
}

bool add_indexed(Maker& maker) {
  Value* x = maker.any(1);
  const size_t axis = random_axis(maker, x);
  const Dim bound = x->type.shape[axis];
  if (maker.least(bound) == 0) return false;
  if (maker.chance(0.5)) {
    Shape shape = x->type.shape;
    shape[axis] = maker.number(1, 5);
    Value* at = indices(maker, shape, bound, false);
    return maker.add(ops::gather, {x, at}, ops::Axis{static_cast<int64_t>(axis)}) != nullptr;
  }
  Value* at = indices(maker, maker.random_shape(static_cast<size_t>(maker.number(1, 2))), bound, false);
  return maker.add(ops::index, {x, at}, ops::IndexedAxes{{static_cast<int64_t>(axis)}}) != nullptr;
}

bool add_found_part(Maker& maker) {
  Value* x = maker.any(1);
  const size_t axis = random_axis(maker, x);
  const int64_t least = maker.least(x->type.shape[axis]);
  if (least == 0) return false;
  const int64_t count = maker.number(1, (least + 1) / 2), last = least - count;
  const Dim start = maker.found_position(last);
  return maker.add(
             ops::slice, {x},
             ops::Slice{.axis = static_cast<int64_t>(axis), .start = start, .end = start + Dim(count)}) !=
         nullptr;
}

bool add_in_place(Maker& maker) {
  Value* x = maker.any(1);
  const size_t axis = random_axis(maker, x);
  Shape shape = x->type.shape;
  const Dim bound = shape[axis];
  if (maker.least(bound) == 0) return false;
  if (maker.chance(0.4)) {
    const ops::Slice slice = random_slice(maker, x);
    shape = x->type.shape;
    Dim& size = shape[static_cast<size_t>(slice.axis)];
    size = ceil_divide(slice.end - slice.start, slice.step);
    return maker.add(ops::slice_scatter, {x, written(maker, x, shape)}, slice) != nullptr;
  }
  shape[axis] = index_count(maker, bound);
  Value* source = written(maker, x, shape);
  const auto signed_axis = static_cast<int64_t>(axis);
  if (maker.chance(0.3)) {
    Value* at = indices(maker, shape, bound, true, axis);
    return maker.add(ops::scatter, {x, at, source}, ops::Axis{signed_axis}) != nullptr;
  }
  Value* at = indices(maker, {shape[axis]}, bound, true);
  if (maker.chance(0.5))
    return maker.add(ops::index_copy, {x, at, source}, ops::Axis{signed_axis}) != nullptr;
  return maker.add(ops::index_put, {x, source, at}, ops::IndexedAxes{{signed_axis}}) != nullptr;
}

}  // namespace ingot::core::random_graphs
