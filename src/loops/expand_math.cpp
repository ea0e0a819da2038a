// SPDX-License-Identifier: Apache-2.0
#include "loops/expand_math.h"

#include "loops/functions.h"
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

Expr expand_node(const Expr& node) {
  if (node->kind == ExprNode::Kind::kFunction) return node->function->expand(node->operands[0]);
  if (node->kind == ExprNode::Kind::kBinary && is_floating(node->dtype)) {
    if (node->binary == Binary::kPower) return math::power(node->operands[0], node->operands[1]);
    if (node->binary == Binary::kAtan2) return math::atan2(node->operands[0], node->operands[1]);
  }
  return node;
}

}  // namespace

Expr expand_math(const Expr& expression) { return rewrite(expression, expand_node); }

Kernel expand_math(Kernel kernel) {
  return expand_math(std::move(kernel), [](const Function&, DType) { return false; });
}

Kernel expand_math(Kernel kernel, bool (*computes)(const Function& function, DType dtype)) {
  const auto expand = [&](const Expr& expression) {
    return rewrite(expression, [&](const Expr& node) {
      const bool is_kept = node->kind == ExprNode::Kind::kFunction && computes(*node->function, node->dtype);
      return is_kept ? node : expand_node(node);
    });
  };
  for (Stage& stage : kernel.stages) {
    for (Binding& binding : stage.bindings) binding.value = expand(binding.value);
    stage.value = expand(stage.value);
  }
  return kernel;
}

}  // namespace ingot::core::loops
