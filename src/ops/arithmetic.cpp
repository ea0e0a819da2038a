// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two tensors, with broadcasting.
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

using enum loops::Binary;

constexpr Expr (*kShiftedLeft)(const Expr&, const Expr&) = apply_operator<kShiftLeft>;
constexpr Expr (*kShiftedRight)(const Expr&, const Expr&) = apply_operator<kShiftRight>;

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
    "maximum", "the larger of a and b, NaN if either is", kNumericPair, Trait::kCommutative);
constinit const Op minimum = binary_op<apply_operator<kMinimum>>(
    "minimum", "the smaller of a and b, NaN if either is", kNumericPair, Trait::kCommutative);
constinit const Op atan2 =
    binary_op<apply_operator<kAtan2>>("atan2", "angle of the point (b, a)", kFloatingPair);
constinit const Op shift_left =
    binary_op<kShiftedLeft>("shift_left", "a shifted left by b bits", kIntegerPair, {}, integer_pair_samples);
constinit const Op shift_right = binary_op<kShiftedRight>(
    "shift_right", "a shifted right by b bits, keeping the sign", kIntegerPair, {}, integer_pair_samples);

}  // namespace ingot::core::ops
