// SPDX-License-Identifier: Apache-2.0
// Terms of linear algebra. Matrices are the last two dims.
#pragma once

#include "importers/aten/converters/call.h"
#include "importers/aten/converters/terms.h"
#include "ops/select.h"

namespace ingot::core::aten {

inline const Dim& rows_of(const core::Value* x) { return x->type.shape[x->type.rank() - 2]; }
inline const Dim& columns_of(const core::Value* x) { return x->type.shape.back(); }
inline int64_t last_axis(const core::Value* x) { return static_cast<int64_t>(x->type.rank()) - 1; }
inline core::Value* matrices(Call& call, std::string_view name) {
  core::Value* x = call.tensor(name);
  call.require(x->type.rank() >= 2, "a matrix without two dims");
  return x;
}
inline core::Value* turned(Call& call, core::Value* x) {
  return swapped(call, x, x->type.rank() - 2, x->type.rank() - 1);
}
inline core::Value* product(Call& call, core::Value* a, core::Value* b) {
  return emit(call, ops::matmul, {a, b});
}
inline Shape with_last(const Shape& batch, std::initializer_list<Dim> last) {
  Shape shape = batch;
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}
inline Shape batch_of(Call& call, const Shape& shape, size_t last) {
  call.require(shape.size() >= last, "a result with too few dims");
  return {shape.begin(), shape.end() - static_cast<ptrdiff_t>(last)};
}
inline core::Value* in_batch(Call& call, core::Value* x, const Shape& batch) {
  call.require(x->type.rank() >= 2, "a matrix without two dims");
  return expanded(call, x, with_last(batch, {rows_of(x), columns_of(x)}));
}
inline core::Value* kept_triangle(Call& call, core::Value* x, bool upper, int64_t diagonal = 0) {
  return emit(call, ops::triangle, {x}, ops::Triangle{diagonal, upper});
}
// [rows, columns]: true where both indices are equal.
inline Term is_diagonal(Call& call, const Dim& rows, const Dim& columns) {
  const Term i(call, unsqueezed(call, counting(call, rows), 1)), j(call, counting(call, columns));
  return i.apply(ops::equal, j);
}
inline core::Value* identity(Call& call, const Dim& size, DType dtype) {
  return is_diagonal(call, size, size).to(dtype);
}
inline void give_empty(Call& call, size_t index, DType dtype) {
  call.give(index, filled(call, {0}, 0, dtype));
}
inline core::Value* with_columns(Call& call, core::Value* x, const Dim& columns) {
  const size_t axis = x->type.rank() - 1;
  if (columns_of(x) == columns) return x;
  const Dim present = minimum(columns_of(x), columns);
  x = sliced(call, x, axis, 0, present);
  Shape missing = x->type.shape;
  missing.back() = columns - present;
  return concatenated(call, {x, filled(call, missing, 0, x->type.dtype)}, axis);
}

}  // namespace ingot::core::aten
