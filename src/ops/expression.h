// SPDX-License-Identifier: Apache-2.0
// Short notation for scalar expressions of Loop IR. Numbers take the dtype of the other operand.
#pragma once

#include <limits>

#include "loops/functions.h"
#include "loops/kernel.h"

namespace ingot::core::ops {

using loops::Expr;
namespace functions = loops::functions;

inline Expr number(const Expr& like, double value) {
  if (is_floating(like->dtype)) return loops::constant(like->dtype, value);
  return loops::integer_constant(like->dtype, static_cast<int64_t>(value));
}
inline Expr boolean(bool value) { return loops::integer_constant(DType::kBool, value ? 1 : 0); }

inline Expr operator+(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kAdd, a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kSubtract, a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kMultiply, a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kDivide, a, b); }
inline Expr operator-(const Expr& a) { return loops::unary(loops::Unary::kNegate, a); }
inline Expr operator+(const Expr& a, double b) { return a + number(a, b); }
inline Expr operator-(const Expr& a, double b) { return a - number(a, b); }
inline Expr operator*(const Expr& a, double b) { return a * number(a, b); }
inline Expr operator/(const Expr& a, double b) { return a / number(a, b); }
inline Expr operator+(double a, const Expr& b) { return number(b, a) + b; }
inline Expr operator-(double a, const Expr& b) { return number(b, a) - b; }
inline Expr operator*(double a, const Expr& b) { return number(b, a) * b; }
inline Expr operator/(double a, const Expr& b) { return number(b, a) / b; }

inline Expr larger(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kMaximum, a, b); }
inline Expr smaller(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kMinimum, a, b); }
inline Expr power_of(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kPower, a, b); }
inline Expr both(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kAnd, a, b); }
inline Expr either(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kOr, a, b); }
inline Expr equal_to(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kEqual, a, b); }
inline Expr differs(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kNotEqual, a, b); }
inline Expr below(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kLess, a, b); }
inline Expr at_most(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kLessEqual, a, b); }
inline Expr above(const Expr& a, const Expr& b) { return loops::binary(loops::Binary::kGreater, a, b); }
inline Expr at_least(const Expr& a, const Expr& b) {
  return loops::binary(loops::Binary::kGreaterEqual, a, b);
}
inline Expr compute(loops::Unary operation, const Expr& a) { return loops::unary(operation, a); }
inline Expr compute(const loops::Function& function, const Expr& a) { return loops::call(function, a); }

// min(max(x, low), high); keeps NaN, and signed zeros at a bound of zero.
inline Expr clamped(const Expr& x, double low, double high) {
  return smaller(number(x, high), larger(number(x, low), x));
}
inline Expr is_not_a_number(const Expr& x) { return is_floating(x->dtype) ? differs(x, x) : boolean(false); }
inline Expr infinity(DType dtype) { return loops::constant(dtype, std::numeric_limits<double>::infinity()); }

// low <= index < high, as a bool.
inline Expr inside(const Dim& index, const Dim& low, const Dim& high) {
  return both(at_least(loops::index_value(index), loops::index_value(low)),
              below(loops::index_value(index), loops::index_value(high)));
}
// A size converted to `dtype`.
inline Expr size_value(DType dtype, const Dim& size) {
  if (auto value = size.constant(); value && is_floating(dtype))
    return loops::constant(dtype, static_cast<double>(*value));
  return loops::convert(dtype, loops::index_value(size));
}
// A position within `extent` as i64, truncated. By way of i32 where it fits: processors convert vectors of
// it.
inline Expr whole_position(const Expr& real, const Dim& extent) {
  const bool fits = extent.constant().value_or(INT64_MAX) <= INT32_MAX;
  return loops::convert(DType::kI64, fits ? loops::convert(DType::kI32, real) : real);
}
// The identity elements of maximum and minimum.
Expr lowest(DType dtype);
Expr highest(DType dtype);

}  // namespace ingot::core::ops
