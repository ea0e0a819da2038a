// SPDX-License-Identifier: Apache-2.0
// Activation functions, as torch defines them.
#include <cmath>

#include "ops/activation.h"
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace ingot::core::ops {
namespace {

using enum loops::Unary;

Expr gelu_of(const Gelu& gelu, const Expr& x) {
  if (!gelu.approximate) return compute(functions::gelu, x);
  // (1 + tanh(u)) / 2 = 1 / (1 + exp(-2u))
  constexpr double kScale = -2 * M_SQRT2 * M_2_SQRTPI * 0.5;
  return x / (1.0 + compute(functions::exp, x * (x * x * (kScale * 0.044715) + kScale)));
}
Samples gelu_samples() {
  return {sample({f32({3, 5}, -4, 4)}, Gelu{}), sample({f32({batch(), 4}, -4, 4)}, Gelu{true})};
}

Expr elu_of(const Elu& elu, const Expr& x) {
  return loops::select(above(x, number(x, 0)), x * elu.scale,
                       compute(functions::expm1, x * elu.input_scale) * (elu.alpha * elu.scale));
}
Samples elu_samples() {
  return {sample({f32({3, 5})}, Elu{}), sample({f32({batch()})}, Elu{1.5, 1.25, 0.5})};
}

Expr leaky_relu_of(const LeakyRelu& leaky, const Expr& x) {
  return loops::select(above(x, number(x, 0)), x, x * leaky.slope);
}
Samples leaky_relu_samples() { return {sample({f32({3, 5})}, LeakyRelu{0.2})}; }

Expr softplus_of(const Softplus& softplus, const Expr& x) {
  const Expr scaled = x * softplus.beta;
  return loops::select(above(scaled, number(x, softplus.threshold)), x,
                       compute(functions::log1p, compute(functions::exp, scaled)) / softplus.beta);
}
Samples softplus_samples() {
  return {sample({f32({3, 5}, -30, 30)}, Softplus{}), sample({f32({batch()})}, Softplus{2, 1})};
}

// The constant comes first: where x equals it, x is kept, signed zeros included, as in torch.
Expr relu_of(const Expr& x) { return larger(number(x, 0), x); }
Expr hard_sigmoid_of(const Expr& x) { return clamped(x + 3.0, 0, 6) / 6.0; }
Expr mish_of(const Expr& x) { return x * compute(functions::tanh, softplus_of({}, x)); }

// log(sigmoid(x)) without overflow: min(x, 0) - log1p(exp(-|x|)).
Expr log_sigmoid_of(const Expr& x) {
  return smaller(number(x, 0), x) -
         compute(functions::log1p, compute(functions::exp, -compute(kAbsolute, x)));
}

}  // namespace

constinit const Op sigmoid = unary_op<apply_function<functions::sigmoid>>("sigmoid", "1 / (1 + exp(-x))");
constinit const Op log_sigmoid = unary_op<log_sigmoid_of>("log_sigmoid", "log(sigmoid(x))");
constinit const Op relu =
    unary_op<relu_of>("relu", "max(x, 0)", kNumericOperand, floating_samples, Trait::kIdempotent);
constinit const Op silu =
    unary_op<[](const Expr& x) { return x / (1.0 + compute(functions::exp, -x)); }>("silu", "x * sigmoid(x)");
constinit const Op mish = unary_op<mish_of>("mish", "x * tanh(softplus(x)), arXiv 1908.08681");
constinit const Op hard_sigmoid = unary_op<hard_sigmoid_of>("hard_sigmoid", "clamp(x + 3, 0, 6) / 6");
constinit const Op hard_swish = unary_op<[](const Expr& x) { return x * clamped(x + 3.0, 0, 6) / 6.0; }>(
    "hard_swish", "x * clamp(x + 3, 0, 6) / 6");

constinit const Op gelu = unary_op_with<Gelu, gelu_of>(
    "gelu", "x times the normal distribution, arXiv 1606.08415", kFloatingOperand, gelu_samples);
constinit const Op elu = unary_op_with<Elu, elu_of>(
    "elu", "exponential linear unit; with its scales also selu and celu", kFloatingOperand, elu_samples);
constinit const Op leaky_relu = unary_op_with<LeakyRelu, leaky_relu_of>(
    "leaky_relu", "x above 0, else slope * x", kFloatingOperand, leaky_relu_samples);
constinit const Op softplus = unary_op_with<Softplus, softplus_of>(
    "softplus", "log(1 + exp(beta * x)) / beta; x where beta * x is above the threshold", kFloatingOperand,
    softplus_samples);

}  // namespace ingot::core::ops
