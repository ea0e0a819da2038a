// SPDX-License-Identifier: Apache-2.0
// Functions of one scalar.
#include "ops/elementwise.h"
#include "ops/ops.h"

namespace ingot::core::ops {

using enum loops::Unary;

namespace {

constexpr double kLn2 = 0.69314718055994531;

// Squares of larger values may overflow; there log(2 x) is accurate enough.
Expr is_large(const Expr& x) { return above(x, number(x, 1e9)); }
Expr log_of_double(const Expr& x) { return compute(functions::log, x) + kLn2; }
Expr with_sign_of(const Expr& x, const Expr& magnitude) {  // keeps signed zeros
  const Expr positive = loops::select(equal_to(x, number(x, 0)), x, magnitude);
  return loops::select(below(x, number(x, 0)), -magnitude, positive);
}

// Uses log1p to keep precision near 0.
Expr inverse_sinh(const Expr& x) {
  const Expr a = compute(kAbsolute, x), square = a * a;
  const Expr small = compute(functions::log1p, a + square / (1.0 + compute(kSquareRoot, 1.0 + square)));
  return with_sign_of(x, loops::select(is_large(a), log_of_double(a), small));
}
Expr inverse_cosh(const Expr& x) {
  const Expr t = x - 1.0;
  const Expr near_one =
      compute(functions::log1p, t + compute(kSquareRoot, t) * compute(kSquareRoot, t + 2.0));
  return loops::select(is_large(x), log_of_double(x), near_one);
}
Expr inverse_tanh(const Expr& x) {
  const Expr a = compute(kAbsolute, x);
  return with_sign_of(x, compute(functions::log1p, 2.0 * a / (1.0 - a)) * 0.5);
}
Samples probability_samples() { return {sample({f32({3, 5}, 0, 1)}), sample({f32({batch()}, 0, 0.01)})}; }
Samples above_one_samples() { return {sample({f32({3, 5}, 1, 4)}), sample({f32({batch()}, 1, 1000)})}; }

}  // namespace

constinit const Op negate = unary_op<apply_operation<kNegate>>("negate", "-x", kNumericOperand);
constinit const Op absolute = unary_op<apply_operation<kAbsolute>>("absolute", "|x|", kNumericOperand,
                                                                   floating_samples, Trait::kIdempotent);
constinit const Op exp = unary_op<apply_function<functions::exp>>("exp", "e to the power x");
constinit const Op exp2 = unary_op<apply_function<functions::exp2>>("exp2", "2 to the power x");
constinit const Op expm1 = unary_op<apply_function<functions::expm1>>("expm1", "exp(x) - 1, exact near 0");
constinit const Op log =
    unary_op<apply_function<functions::log>>("log", "natural logarithm", kFloatingOperand, positive_samples);
constinit const Op log1p = unary_op<apply_function<functions::log1p>>("log1p", "log(1 + x), exact near 0",
                                                                      kFloatingOperand, positive_samples);
constinit const Op log2 = unary_op<apply_function<functions::log2>>("log2", "logarithm to the base 2",
                                                                    kFloatingOperand, positive_samples);
constinit const Op log10 = unary_op<apply_function<functions::log10>>("log10", "logarithm to the base 10",
                                                                      kFloatingOperand, positive_samples);
constinit const Op square_root =
    unary_op<apply_operation<kSquareRoot>>("square_root", "square root", kFloatingOperand, positive_samples);
constinit const Op reciprocal_square_root = unary_op<apply_function<functions::reciprocal_square_root>>(
    "reciprocal_square_root", "1 / square_root(x)", kFloatingOperand, positive_samples);
constinit const Op reciprocal = unary_op<[](const Expr& x) { return 1.0 / x; }>("reciprocal", "1 / x");

constinit const Op sin = unary_op<apply_function<functions::sin>>("sin", "sine");
constinit const Op cos = unary_op<apply_function<functions::cos>>("cos", "cosine");
constinit const Op tan = unary_op<apply_function<functions::tan>>("tan", "tangent");
constinit const Op asin =
    unary_op<apply_function<functions::asin>>("asin", "inverse sine", kFloatingOperand, unit_samples);
constinit const Op acos =
    unary_op<apply_function<functions::acos>>("acos", "inverse cosine", kFloatingOperand, unit_samples);
constinit const Op atan = unary_op<apply_function<functions::atan>>("atan", "inverse tangent");
constinit const Op sinh = unary_op<apply_function<functions::sinh>>("sinh", "hyperbolic sine");
constinit const Op cosh = unary_op<apply_function<functions::cosh>>("cosh", "hyperbolic cosine");
constinit const Op tanh = unary_op<apply_function<functions::tanh>>("tanh", "hyperbolic tangent");
constinit const Op asinh = unary_op<inverse_sinh>("asinh", "inverse hyperbolic sine");
constinit const Op acosh =
    unary_op<inverse_cosh>("acosh", "inverse hyperbolic cosine", kFloatingOperand, above_one_samples);
constinit const Op atanh =
    unary_op<inverse_tanh>("atanh", "inverse hyperbolic tangent", kFloatingOperand, unit_samples);
constinit const Op erf = unary_op<apply_function<functions::erf>>("erf", "error function");
constinit const Op erfc =
    unary_op<apply_function<functions::erfc>>("erfc", "1 - erf(x), accurate where that is small");

constinit const Op scaled_erfc = unary_op<apply_function<functions::scaled_erfc>>(
    "scaled_erfc", "exp(x^2) erfc(x)", kFloatingOperand, unit_samples);
constinit const Op inverse_erf = unary_op<apply_function<functions::inverse_erf>>(
    "inverse_erf", "inverse of the error function", kFloatingOperand, unit_samples);
constinit const Op inverse_normal = unary_op<apply_function<functions::inverse_normal>>(
    "inverse_normal", "inverse of the normal distribution function", kFloatingOperand, probability_samples);
constinit const Op log_gamma = unary_op<apply_function<functions::log_gamma>>(
    "log_gamma", "logarithm of the absolute value of the gamma function", kFloatingOperand, positive_samples);
constinit const Op digamma = unary_op<apply_function<functions::digamma>>(
    "digamma", "derivative of log_gamma", kFloatingOperand, positive_samples);
constinit const Op bessel_i0 =
    unary_op<apply_function<functions::bessel_i0>>("bessel_i0", "modified Bessel function of order 0");
constinit const Op bessel_i1 =
    unary_op<apply_function<functions::bessel_i1>>("bessel_i1", "modified Bessel function of order 1");
constinit const Op bessel_j0 =
    unary_op<apply_function<functions::bessel_j0>>("bessel_j0", "Bessel function of the first kind, order 0");
constinit const Op bessel_j1 =
    unary_op<apply_function<functions::bessel_j1>>("bessel_j1", "Bessel function of the first kind, order 1");
constinit const Op bessel_y0 = unary_op<apply_function<functions::bessel_y0>>(
    "bessel_y0", "Bessel function of the second kind, order 0", kFloatingOperand, positive_samples);
constinit const Op bessel_y1 = unary_op<apply_function<functions::bessel_y1>>(
    "bessel_y1", "Bessel function of the second kind, order 1", kFloatingOperand, positive_samples);
constinit const Op scaled_bessel_i0 =
    unary_op<apply_function<functions::scaled_bessel_i0>>("scaled_bessel_i0", "exp(-|x|) bessel_i0(x)");
constinit const Op scaled_bessel_i1 =
    unary_op<apply_function<functions::scaled_bessel_i1>>("scaled_bessel_i1", "exp(-|x|) bessel_i1(x)");

constinit const Op floor = unary_op<apply_operation<kFloor>>(
    "floor", "the next integer below", kFloatingOperand, floating_samples, Trait::kIdempotent);
constinit const Op ceil = unary_op<apply_operation<kCeil>>("ceil", "the next integer above", kFloatingOperand,
                                                           floating_samples, Trait::kIdempotent);
constinit const Op round = unary_op<apply_operation<kRoundEven>>(
    "round", "the nearest integer, halves to even", kFloatingOperand, floating_samples, Trait::kIdempotent);
constinit const Op truncate = unary_op<apply_operation<kTruncate>>(
    "truncate", "the next integer towards 0", kFloatingOperand, floating_samples, Trait::kIdempotent);
constinit const Op sign = unary_op<[](const Expr& x) {
  const Expr zero = number(x, 0), one = number(x, 1);
  return loops::select(above(x, zero), one, loops::select(below(x, zero), number(x, -1), zero));
}>("sign", "-1, 0 or 1; 0 of NaN", kNumericOperand, floating_samples, Trait::kIdempotent);

}  // namespace ingot::core::ops
