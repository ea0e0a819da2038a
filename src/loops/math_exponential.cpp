// SPDX-License-Identifier: Apache-2.0
// exp and functions derived from it. Coefficients are Chebyshev fits, computed with 60 digits.
#include <cmath>

#include "loops/functions.h"
#include "loops/math_expressions.h"

namespace ingot::core::loops::math {
namespace {

// (exp(r) - 1 - r) / r^2 for |r| <= log(2) / 2
constexpr double kTail32[] = {0.0013926184, 0.00836317893, 0.0416665561, 0.166665763, 0.5};
constexpr double kTail64[] = {2.0914686968086876e-09,
                              2.5105217004720745e-08,
                              2.7557273643110297e-07,
                              2.7557255400206422e-06,
                              2.4801587325547743e-05,
                              0.00019841269874820627,
                              0.0013888888888883748,
                              0.0083333333333261358,
                              0.041666666666666671,
                              0.16666666666666671,
                              0.5};

// (2^r - 1) / r for |r| <= 1/2
constexpr double kPowerTail32[] = {0.000154628797, 0.00133909844, 0.00961806253,
                                   0.0555035956,   0.240226507,   0.693147182};
// 2^r for |r| <= 1/2
constexpr double kPower32[] = {0.00132647273, 0.00967151299, 0.0555073358, 0.240222424, 0.693147004, 1};

struct Reduced {
  Expr exponent;  // integer n
  Expr rest;      // r: x = n log(2) + r
};

// Adding 1.5 * 2^(mantissa bits) rounds to an integer, which ends up in the low bits.
Reduced reduce(const Expr& x) {
  const bool wide = x->dtype == DType::kF64;
  const Expr magic = number(x, wide ? 0x1.8p52 : 0x1.8p23);
  const Expr shifted = fma(x, number(x, 1.4426950408889634), magic);
  const Expr whole = shifted - magic;
  const Expr exponent = bits_of(shifted) - integer(x, wide ? 0x4338000000000000 : 0x4b400000);
  const double high = wide ? 0.69314718036912382 : 0.693145752,
               low = wide ? 1.9082149292705877e-10 : 1.42860682e-06;
  const Expr rest = fma(whole, number(x, -low), fma(whole, number(x, -high), x));
  return {exponent, rest};
}

// exp(r) - 1
Expr small_expm1(const Expr& rest) {
  const bool wide = rest->dtype == DType::kF64;
  const Expr tail = wide ? polynomial(rest, kTail64) : polynomial(rest, kTail32);
  return fma(rest * rest, tail, rest);
}

// Propagates NaN.
Expr clamp(const Expr& x, double low, double high) {
  const Expr above = select(less(number(x, high), x), number(x, high), x);
  return select(less(above, number(x, low)), number(x, low), above);
}

// value * 2^exponent in two steps, so that neither overflows and subnormal results are rounded once.
Expr scaled(const Expr& value, const Expr& exponent) {
  const Expr half = binary(Binary::kShiftRight, exponent, integer(value, 1));
  return value * power_of_two(half) * power_of_two(exponent - half);
}

// Beyond these limits exp is zero or infinite.
Reduced reduce_any(const Expr& x) {
  return reduce(x->dtype == DType::kF64 ? clamp(x, -746, 710) : clamp(x, -104, 89));
}

// 2^rest for |rest| <= 1/2
Expr small_exp2(const Expr& rest) {
  const Expr one = number(rest, 1);
  if (rest->dtype == DType::kF32) return fma(rest, polynomial(rest, kPowerTail32), one);
  return small_expm1(rest * number(rest, M_LN2)) + one;
}

// Exact for integers.
Expr exp2(const Expr& x) {
  const bool wide = x->dtype == DType::kF64;
  const Expr limited = wide ? clamp(x, -1076, 1025) : clamp(x, -151, 129);
  const Expr whole = round_even(limited);
  const Expr any = scaled(small_exp2(limited - whole), convert(wide ? DType::kI64 : DType::kI32, whole));
  const Expr magic = number(x, wide ? 0x1.8p52 : 0x1.8p23), shifted = x + magic;
  const Expr usual = with_exponent_raised(small_exp2(x - (shifted - magic)), bits_of(shifted));
  const Expr is_usual = less_equal(absolute(x), number(x, wide ? 1000 : 120));
  return rarely(unary(Unary::kNot, is_usual), any, usual);
}

// exp(x) - 1 = 2 (2^(n-1) (exp(r) - 1) + 2^(n-1) - 1/2), exact where n is 0.
Expr expm1(const Expr& x) {
  const bool wide = x->dtype == DType::kF64;
  const Reduced reduced = reduce(wide ? clamp(x, -40, 710) : clamp(x, -20, 89));
  const Expr scale = power_of_two(reduced.exponent - integer(x, 1));
  const Expr small = small_expm1(reduced.rest);
  const Expr half = fma(small, scale, scale - number(x, 0.5));
  // Halving a subnormal number loses a bit.
  const Expr whole = select(equal(reduced.exponent, integer(x, 0)), small, half + half);
  return select(equal(x, number(x, 0)), x, whole);
}

// Computed for -|x|, so that nothing overflows and small results keep their precision.
Expr sigmoid(const Expr& x) {
  const Expr small = exp(-absolute(x));
  const Expr one = number(x, 1);
  return select(less(x, number(x, 0)), small, one) / (one + small);
}

// expm1(2z) / (expm1(2z) + 2); beyond the limit the result is 1.
Expr tanh(const Expr& x) {
  const Expr magnitude = absolute(x), limit = number(x, x->dtype == DType::kF64 ? 22 : 10);
  const Expr limited = select(less(limit, magnitude), limit, magnitude);
  const Expr grown = expm1(limited + limited);
  return with_sign_of(grown / (grown + number(x, 2)), x);
}

// For |x|, up to where sinh and cosh overflow.
Reduced reduce_magnitude(const Expr& x) {
  const Expr magnitude = absolute(x), limit = number(x, 711);
  return reduce(select(less(limit, magnitude), limit, magnitude));
}

// t + t / (2 t + 1) for t = (exp|x| - 1) / 2; exp|x| / 2 where that is the same.
Expr sinh(const Expr& x) {
  if (x->dtype == DType::kF32) return through_f64(sinh, x);
  const Reduced reduced = reduce_magnitude(x);
  const Expr small = small_expm1(reduced.rest), less_one = reduced.exponent - integer(x, 1);
  const Expr scale = power_of_two(less_one);
  const Expr half = fma(small, scale, scale - number(x, 0.5));
  const Expr moderate = half + half / (half + half + number(x, 1));
  const Expr large = scaled(small + number(x, 1), less_one);
  const Expr magnitude = absolute(x);
  const Expr result = select(less(magnitude, number(x, 22)), moderate, large);
  return with_sign_of(select(less(magnitude, number(x, 0x1p-28)), magnitude, result), x);
}

// h + 1 / (4 h) for h = exp|x| / 2, which is finite wherever cosh is.
Expr cosh(const Expr& x) {
  if (x->dtype == DType::kF32) return through_f64(cosh, x);
  const Reduced reduced = reduce_magnitude(x);
  const Expr half = scaled(small_expm1(reduced.rest) + number(x, 1), reduced.exponent - integer(x, 1));
  return half + number(x, 0.25) / half;
}

}  // namespace

Expr with_exponent_raised(const Expr& value, const Expr& exponent) {
  const Expr bits = integer(value, value->dtype == DType::kF64 ? 52 : 23);
  return real_of(bits_of(value) + binary(Binary::kShiftLeft, exponent, bits));
}

Expr exp(const Expr& x) {
  const Reduced reduced = reduce_any(x);
  return scaled(small_expm1(reduced.rest) + number(x, 1), reduced.exponent);
}

Expr exp_of_sum(const Expr& x, const Expr& low) {
  const Reduced reduced = reduce_any(x);
  const Expr power = small_expm1(reduced.rest), one = number(x, 1);
  return scaled(fma(power + one, low, power) + one, reduced.exponent);
}

Expr moderate_exp(const Expr& x) {
  const Reduced reduced = reduce(x);
  return with_exponent_raised(small_expm1(reduced.rest) + number(x, 1), reduced.exponent);
}

// The shift discards the magic number.
Expr exp_or_zero(const Expr& x) {
  const Expr least = number(x, -87.3);
  const Reduced reduced = reduce(select(less(x, least), least, x));
  const Expr power = (small_expm1(reduced.rest) + number(x, 1)) * power_of_two(reduced.exponent);
  return select(less(x, number(x, -103.972)), number(x, 0), power);
}

// The part of the exponent below 1 fits an f32.
Expr power_of_two32(const Expr& exponent) {
  const Expr magic = number(exponent, 0x1.8p52);
  const Expr shifted = exponent + magic;
  const Expr rest = convert(DType::kF32, exponent - (shifted - magic));
  return with_exponent_raised(small_exp2(rest), convert(DType::kI32, bits_of(shifted)));
}

Expr moderate_exp2(const Expr& x) {
  const Expr magic = number(x, 0x1.8p23);
  const Expr shifted = x + magic;
  return with_exponent_raised(polynomial(x - (shifted - magic), kPower32), bits_of(shifted));
}

}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function exp = {
    .name = "exp", .evaluate = [](double x) { return std::exp(x); }, .expand = math::exp};
constinit const Function exp2 = {
    .name = "exp2", .evaluate = [](double x) { return std::exp2(x); }, .expand = math::exp2};
constinit const Function expm1 = {
    .name = "expm1", .evaluate = [](double x) { return std::expm1(x); }, .expand = math::expm1};
constinit const Function sigmoid = {
    .name = "sigmoid", .evaluate = [](double x) { return 1 / (1 + std::exp(-x)); }, .expand = math::sigmoid};
constinit const Function tanh = {
    .name = "tanh", .evaluate = [](double x) { return std::tanh(x); }, .expand = math::tanh};
constinit const Function sinh = {
    .name = "sinh", .evaluate = [](double x) { return std::sinh(x); }, .expand = math::sinh};
constinit const Function cosh = {
    .name = "cosh", .evaluate = [](double x) { return std::cosh(x); }, .expand = math::cosh};

}  // namespace ingot::core::loops::functions
