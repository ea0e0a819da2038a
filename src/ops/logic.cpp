// SPDX-License-Identifier: Apache-2.0
// Comparisons, and bitwise and logical operations.
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

using enum loops::Binary;

constexpr Op bits_op(Op op) {
  op.operands = kBitsPair;
  op.samples = integer_pair_samples;
  return op;
}
constexpr Op bool_op(Op op) {
  op.operands = kBoolPair;
  op.samples = boolean_pair_samples;
  return op;
}
constexpr Operand kBits[] = {{"x", DTypeSet::kIntegerOrBool}};
constexpr Operand kBool[] = {{"x", DTypeSet::kBool}};

constexpr Op predicate(Op op) {
  op.infer = infer_same_bool;
  return op;
}

// The sign of NaN, which processors and folding disagree in, does not count.
Expr has_sign(const Expr& x) {
  const DType bits = x->dtype == DType::kF64 ? DType::kI64 : DType::kI32;
  return both(below(loops::bitcast(bits, x), loops::integer_constant(bits, 0)), equal_to(x, x));
}

}  // namespace

constinit const Op equal = comparison_op<apply_operator<kEqual>>("equal", "a = b", Trait::kCommutative);
constinit const Op not_equal =
    comparison_op<apply_operator<kNotEqual>>("not_equal", "a != b", Trait::kCommutative);
constinit const Op less = comparison_op<apply_operator<kLess>>("less", "a < b");
constinit const Op less_equal = comparison_op<apply_operator<kLessEqual>>("less_equal", "a <= b");
constinit const Op greater = comparison_op<apply_operator<kGreater>>("greater", "a > b");
constinit const Op greater_equal = comparison_op<apply_operator<kGreaterEqual>>("greater_equal", "a >= b");

constinit const Op bitwise_and =
    bits_op(binary_op<apply_operator<kAnd>>("bitwise_and", "a and b, bit by bit", {}, Trait::kCommutative));
constinit const Op bitwise_or =
    bits_op(binary_op<apply_operator<kOr>>("bitwise_or", "a or b, bit by bit", {}, Trait::kCommutative));
constinit const Op bitwise_xor = bits_op(
    binary_op<apply_operator<kXor>>("bitwise_xor", "one of a and b, bit by bit", {}, Trait::kCommutative));
constinit const Op logical_and =
    bool_op(binary_op<apply_operator<kAnd>>("logical_and", "a and b", {}, Trait::kCommutative));
constinit const Op logical_or =
    bool_op(binary_op<apply_operator<kOr>>("logical_or", "a or b", {}, Trait::kCommutative));
constinit const Op logical_xor =
    bool_op(binary_op<apply_operator<kXor>>("logical_xor", "one of a and b", {}, Trait::kCommutative));

constinit const Op bitwise_not = unary_op<apply_operation<loops::Unary::kNot>>(
    "bitwise_not", "every bit of x inverted", kBits, integer_samples);
constinit const Op logical_not =
    unary_op<apply_operation<loops::Unary::kNot>>("logical_not", "not x", kBool, boolean_samples);
constinit const Op is_nan = predicate(unary_op<is_not_a_number>("is_nan", "whether x is NaN"));
constinit const Op sign_bit =
    predicate(unary_op<has_sign>("sign_bit", "whether x is negative or -0; false for NaN"));
constinit const Op is_infinite = predicate(
    unary_op<[](const Expr& x) { return equal_to(compute(loops::Unary::kAbsolute, x), infinity(x->dtype)); }>(
        "is_infinite", "whether x is an infinity of either sign"));

}  // namespace ingot::core::ops
