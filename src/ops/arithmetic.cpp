// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two tensors, with broadcasting.
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

using enum loops::Binary;

Expr integer(const Expr& like, int64_t value) { return loops::integer_constant(like->dtype, value); }
Expr in_range(const Expr& amount, int64_t bits) {
  const Expr enough = binary(kLess, amount, integer(amount, bits));
  return is_signed(amount->dtype) ? binary(kAnd, enough, binary(kGreaterEqual, amount, integer(amount, 0)))
                                  : enough;
}
// Amounts of at least the width, or below 0, shift everything out.
Expr shifted_left(const Expr& a, const Expr& b) {
  const Expr fits = in_range(b, bit_width(a->dtype));
  return loops::select(fits, binary(kShiftLeft, a, loops::select(fits, b, integer(b, 0))), integer(a, 0));
}
Expr shifted_right(const Expr& a, const Expr& b) {
  const int64_t most = bit_width(a->dtype) - 1;
  const Expr fits = in_range(b, most + 1);
  const Expr shifted = binary(kShiftRight, a, loops::select(fits, b, integer(b, most)));
  return is_signed(a->dtype) ? shifted : loops::select(fits, shifted, integer(a, 0));
}

}  // namespace

constinit const Op add = binary_op<apply_operator<kAdd>>("add", "a + b", kNumericPair, Trait::kCommutative);
constinit const Op subtract = binary_op<apply_operator<kSubtract>>("subtract", "a - b");
constinit const Op multiply =
    binary_op<apply_operator<kMultiply>>("multiply", "a * b", kNumericPair, Trait::kCommutative);
constinit const Op divide = binary_op<apply_operator<kDivide>>("divide", "a / b; integers truncate");
constinit const Op floor_divide =
    binary_op<apply_operator<kFloorDivide>>("floor_divide", "a / b rounded towards minus infinity");
constinit const Op modulo = binary_op<apply_operator<kModulo>>("modulo", "remainder with the sign of b");
constinit const Op remainder =
    binary_op<apply_operator<kRemainder>>("remainder", "remainder with the sign of a (fmod)");
constinit const Op power =
    binary_op<apply_operator<kPower>>("power", "a to the power b", kNumericPair, {}, power_samples);
constinit const Op maximum = binary_op<apply_operator<kMaximum>>(
    "maximum", "the larger of a and b, or NaN if either is NaN", kNumericPair, Trait::kCommutative);
constinit const Op minimum = binary_op<apply_operator<kMinimum>>(
    "minimum", "the smaller of a and b, or NaN if either is NaN", kNumericPair, Trait::kCommutative);
constinit const Op atan2 =
    binary_op<apply_operator<kAtan2>>("atan2", "angle of the point (b, a)", kFloatingPair);
constinit const Op shift_left =
    binary_op<shifted_left>("shift_left", "a shifted left by b bits", kIntegerPair, {}, integer_pair_samples);
constinit const Op shift_right = binary_op<shifted_right>(
    "shift_right", "a shifted right by b bits, keeping the sign", kIntegerPair, {}, integer_pair_samples);

}  // namespace ingot::core::ops
