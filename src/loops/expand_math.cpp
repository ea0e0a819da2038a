// SPDX-License-Identifier: Apache-2.0
#include "loops/expand_math.h"

#include "loops/math_expressions.h"
#include "loops/rewrite.h"

namespace ingot::core::loops {
namespace math {

Expr integer(const Expr& like, int64_t value) {
  return integer_constant(bit_width(like->dtype) == 64 ? DType::kI64 : DType::kI32, value);
}

Expr bits_of(const Expr& value) {
  return bitcast(value->dtype == DType::kF64 ? DType::kI64 : DType::kI32, value);
}

Expr real_of(const Expr& bits) {
  return bitcast(bits->dtype == DType::kI64 ? DType::kF64 : DType::kF32, bits);
}

Expr polynomial(const Expr& x, std::span<const double> coefficients) {
  Expr sum = number(x, coefficients[0]);
  for (const double coefficient : coefficients.subspan(1)) sum = fma(sum, x, number(x, coefficient));
  return sum;
}

Expr with_sign_of(const Expr& magnitude, const Expr& sign) {
  const Expr bit = integer(sign, sign->dtype == DType::kF64 ? INT64_MIN : INT32_MIN);
  return real_of(binary(Binary::kOr, bits_of(magnitude), binary(Binary::kAnd, bits_of(sign), bit)));
}

Expr power_of_two(const Expr& exponent) {
  const bool wide = exponent->dtype == DType::kI64;
  const Expr biased = exponent + integer(exponent, wide ? 1023 : 127);
  return real_of(binary(Binary::kShiftLeft, biased, integer(exponent, wide ? 52 : 23)));
}

Expr through_f64(Expr (*function)(const Expr&), const Expr& x) {
  return convert(x->dtype, function(convert(DType::kF64, x)));
}

}  // namespace math

namespace {

Expr expand_unary(Unary op, const Expr& x) {
  switch (op) {
    case Unary::kReciprocalSquareRoot:
      return binary(Binary::kDivide, math::number(x, 1), unary(Unary::kSquareRoot, x));
    case Unary::kExp:
      return math::exp(x);
    case Unary::kExp2:
      return math::exp2(x);
    case Unary::kExpm1:
      return math::expm1(x);
    case Unary::kLog:
      return math::log(x);
    case Unary::kLog1p:
      return math::log1p(x);
    case Unary::kLog2:
      return math::log2(x);
    case Unary::kLog10:
      return math::log10(x);
    case Unary::kSin:
      return math::sin(x);
    case Unary::kCos:
      return math::cos(x);
    case Unary::kTan:
      return math::tan(x);
    case Unary::kAsin:
      return math::asin(x);
    case Unary::kAcos:
      return math::acos(x);
    case Unary::kAtan:
      return math::atan(x);
    case Unary::kSinh:
      return math::sinh(x);
    case Unary::kCosh:
      return math::cosh(x);
    case Unary::kTanh:
      return math::tanh(x);
    case Unary::kErf:
      return math::erf(x);
    case Unary::kErfc:
      return math::erfc(x);
    case Unary::kGelu:
      return math::gelu(x);
    case Unary::kSigmoid:
      return math::sigmoid(x);
    default:
      return nullptr;
  }
}

Expr expand_node(const Expr& node) {
  Expr expanded;
  if (node->kind == ExprNode::Kind::kUnary) expanded = expand_unary(node->unary, node->operands[0]);
  if (node->kind == ExprNode::Kind::kBinary && is_floating(node->dtype)) {
    if (node->binary == Binary::kPower) expanded = math::power(node->operands[0], node->operands[1]);
    if (node->binary == Binary::kAtan2) expanded = math::atan2(node->operands[0], node->operands[1]);
  }
  return expanded ? expanded : node;
}

}  // namespace

Expr expand_math(const Expr& expression) { return rewrite(expression, expand_node); }

Kernel expand_math(Kernel kernel) {
  for (Stage& stage : kernel.stages) {
    for (Binding& binding : stage.bindings) binding.value = expand_math(binding.value);
    stage.value = expand_math(stage.value);
  }
  return kernel;
}

}  // namespace ingot::core::loops
