// SPDX-License-Identifier: Apache-2.0
// Logarithms and powers. Coefficients are Chebyshev fits, computed with 60 digits.
#include <cmath>
#include <limits>

#include "loops/functions.h"
#include "loops/math_expressions.h"

namespace ingot::core::loops::math {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)]
constexpr double kLog32[] = {0.0697158501, -0.114800684, 0.1168558,   -0.124256544, 0.142490402,
                             -0.166678026, 0.200007156,  -0.24999997, 0.333333313};
// (2 atanh(s) / s - 2) / s^2 in s^2 for s = f / (2 + f)
constexpr double kAtanh64[] = {0.13086767009948647, 0.13268759668560562, 0.15386240205813481,
                               0.18181795630884753, 0.2222222239180047,  0.28571428570803231,
                               0.40000000000000879, 0.66666666666666663};
// (2 atanh(s) / s - 2 - 2 s^2 / 3) / s^4
constexpr double kAtanhTail64[] = {0.11723178623919275, 0.11706236339486488, 0.13334804693847518,
                                   0.15384594962518428, 0.18181818335392802, 0.22222222221655885,
                                   0.28571428571429364, 0.40000000000000002};
// 2 atanh(s) / (s log(2)) in s^2
constexpr double kLog2OfPower[] = {0.34073884344187377, 0.41167219222531326, 0.57708359489265115,
                                   0.96179667328187413, 2.8853900817901428};
constexpr double kLn2High64 = 0.69314718036912382,
                 kLn2Low64 = 1.9082149292705877e-10;  // the product of `high` with n is exact

struct Split {
  Expr exponent;  // e, as a float
  Expr mantissa;  // m in [sqrt(1/2), sqrt(2)): x = 2^e m
};

Expr smallest_normal(const Expr& x) { return number(x, x->dtype == DType::kF64 ? 0x1p-1022 : 0x1p-126); }

// For normal x.
Split split_normal(const Expr& x) {
  const bool wide = x->dtype == DType::kF64;
  const Expr shift = integer(x, wide ? 52 : 23);
  const Expr bits = bits_of(x);
  const Expr offset = bits - integer(x, wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3);  // of sqrt(1/2)
  const Expr exponent = binary(Binary::kShiftRight, offset, shift);
  return {convert(x->dtype, exponent), real_of(bits - binary(Binary::kShiftLeft, exponent, shift))};
}

Split split(const Expr& x) {
  const bool wide = x->dtype == DType::kF64;
  const Expr is_subnormal = less(x, smallest_normal(x));
  const Split parts = split_normal(select(is_subnormal, x * number(x, wide ? 0x1p52 : 0x1p23), x));
  const Expr correction = select(is_subnormal, number(x, wide ? 52 : 23), number(x, 0));
  return {parts.exponent - correction, parts.mantissa};
}

// log of a mantissa, f64.
Expr small_log(const Expr& mantissa) {
  const Expr f = mantissa - number(mantissa, 1);
  const Expr s = f / (f + number(f, 2));
  const Expr z = s * s;
  const Expr half_square = number(f, 0.5) * f * f;
  return f - (half_square - s * (half_square + z * polynomial(z, kAtanh64)));
}

// log(1 + f) - f for an f32 of a mantissa.
Expr log_tail32(const Expr& f, const Expr& low) {
  const Expr square = f * f;
  return fma(number(f, -0.5), square, fma(f * square, polynomial(f, kLog32), low));
}

// log of a split number.
Expr log_of(const Split& parts) {
  const Expr& x = parts.mantissa;
  const Expr f = x - number(x, 1);
  if (x->dtype == DType::kF32) {
    const Expr tail = log_tail32(f, parts.exponent * number(x, 1.42860682e-06));
    return fma(parts.exponent, number(x, 0.693145752), f + tail);
  }
  const Expr square = f * f;
  const Expr s = f / (f + number(x, 2));
  const Expr z = s * s;
  const Expr half_square = number(x, 0.5) * square;
  const Expr tail = fma(s, half_square + z * polynomial(z, kAtanh64), parts.exponent * number(x, kLn2Low64));
  return parts.exponent * number(x, kLn2High64) - ((half_square - tail) - f);
}

struct Double {  // high + low, f64 each
  Expr high, low;
};

Double exact_sum(const Expr& a, const Expr& b) {
  const Expr sum = a + b;
  const Expr part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

Double exact_product(const Expr& a, const Expr& b) {
  const Expr product = a * b;
  return {product, fma(a, b, -product)};
}

// log of a positive, finite f64 to about 65 bits, since pow multiplies its error by up to 700.
Double precise_log(const Expr& x) {
  const Split parts = split(x);
  const Expr one = number(x, 1), two = number(x, 2);
  const Expr f = parts.mantissa - one;  // exact
  const Double denominator = exact_sum(two, f);
  const Expr s = f / denominator.high;
  const Expr s_low = (fma(-s, denominator.high, f) - s * denominator.low) / denominator.high;
  // 2 s + 2/3 s^3 + s^5 (...)
  const Double square = exact_product(s, s);
  const Double cube = exact_product(square.high, s);
  const Expr cube_low = fma(square.low, s, cube.low);
  const Expr third = number(x, 2.0 / 3), third_low = number(x, 3.7007434154171886e-17);
  const Double scaled = exact_product(cube.high, third);
  const Expr scaled_low = fma(cube.high, third_low, fma(cube_low, third, scaled.low));
  const Expr tail = cube.high * square.high * polynomial(square.high, kAtanhTail64);
  const Double first = exact_sum(two * s, scaled.high);
  const Expr ln2_low = number(x, kLn2Low64);
  const Double base = exact_sum(parts.exponent * number(x, kLn2High64), first.high);
  const Double with_low = exact_sum(base.high, parts.exponent * ln2_low);
  // s_low contributes to 2 s and to 2/3 s^3; in the latter it moves 2 s^2.
  const Expr slope = fma(two, square.high, two);
  const Expr low = with_low.low + base.low + first.low + fma(slope, s_low, scaled_low + tail);
  return exact_sum(with_low.high, low);
}

// |x|^y for finite, positive |x|.
using Power = Expr (*)(const Expr& x, const Expr& y);
Expr positive_power(const Expr& x, const Expr& y) {
  const Double logarithm = precise_log(x);
  const Double product = exact_product(logarithm.high, y);
  const Expr low = fma(logarithm.low, y, product.low);
  // If the result is 0 or infinite, the low part is irrelevant and may be NaN.
  const Expr in_range = less(absolute(product.high), number(x, 800));
  return exp_of_sum(product.high, select(in_range, low, number(x, 0)));
}

// Of f32: the bits that f64 has beyond those of the result make up for the error of the product.
Expr log2_of_power32(const Split& base, const Expr& y) {
  const auto wide = [](const Expr& value) { return convert(DType::kF64, value); };
  const Expr f = wide(base.mantissa - number(base.mantissa, 1));
  const Expr s = f / (f + number(f, 2)), square = s * s;
  return fma(s, polynomial(square, kLog2OfPower), wide(base.exponent)) * wide(y);
}

Expr positive_power32(const Expr& x, const Expr& y) {
  const Expr exponent = log2_of_power32(split(x), y) * number(convert(DType::kF64, x), M_LN2);
  return convert(DType::kF32, exp(exponent));
}

Expr power_of(const Expr& x, const Expr& y, Power of_positive) {
  const Expr zero = number(x, 0), one = number(x, 1), infinity = number(x, kInfinity);
  const Expr magnitude = absolute(x);
  const Expr finite = both(less(zero, magnitude), less(magnitude, infinity));
  const Expr rounded = unary(Unary::kFloor, y);
  const Expr is_integer = equal(rounded, y);
  const Expr half = number(x, 0.5) * y;
  const Expr is_odd = both(is_integer, unary(Unary::kNot, equal(unary(Unary::kFloor, half), half)));
  // 0 and infinity: 0, 1 or infinity by the sign of y.
  const Expr grows = equal(less(one, magnitude), less(zero, y));
  Expr result = select(finite, of_positive(select(finite, magnitude, one), y), select(grows, infinity, zero));
  // y infinite: depends on whether |x| > 1.
  result = select(equal(absolute(y), infinity),
                  select(equal(magnitude, one), one, select(grows, infinity, zero)), result);
  const Expr is_negative = less(with_sign_of(one, x), zero);
  result = select(both(is_negative, is_odd), -result, result);
  const Expr no_real_result = both(both(less(x, zero), less(magnitude, infinity)),
                                   both(unary(Unary::kNot, is_integer), less(absolute(y), infinity)));
  result = select(no_real_result, number(x, kNaN), result);
  const Expr is_nan = unary(Unary::kNot, both(equal(x, x), equal(y, y)));
  result = select(is_nan, number(x, kNaN), result);
  return select(binary(Binary::kOr, equal(y, zero), equal(x, one)), one, result);
}

// The logarithm to any base whose value for positive, finite x is `usual`.
Expr with_limits(const Expr& x, const Expr& usual) {
  const Expr zero = number(x, 0);
  const Expr finite =
      select(less(x, number(x, kInfinity)), usual, x);  // infinity and NaN are their own logarithms
  return select(equal(x, zero), number(x, -kInfinity), select(less(x, zero), number(x, kNaN), finite));
}

// A logarithm that is `of` the parts of positive, finite numbers. Few are subnormal.
Expr logarithm(const Expr& x, Expr (*of)(const Split& parts)) {
  const Expr is_usual = both(less_equal(smallest_normal(x), x), less(x, number(x, kInfinity)));
  return rarely(unary(Unary::kNot, is_usual), with_limits(x, of(split(x))), of(split_normal(x)));
}

// log(m) factor + exponent (base + base_low), each in two parts, of which that of `exponent` and `base` is
// exact.
struct Base {
  double factor, factor_low, base, base_low;
};
Expr log_to_base32(const Split& parts, const Base& constants) {
  const Expr &x = parts.mantissa, factor = number(x, constants.factor);
  const Expr f = x - number(x, 1);
  const Expr tail = log_tail32(f, number(x, 0));
  const Expr product = f * factor;
  const Expr product_low = fma(f, number(x, constants.factor_low), fma(f, factor, -product));
  const Expr low = fma(parts.exponent, number(x, constants.base_low), fma(tail, factor, product_low));
  const Expr whole = parts.exponent * number(x, constants.base);
  const Expr sum = whole + product;
  return sum + ((whole - sum) + product + low);
}

// Exact for powers of two.
Expr log2_of(const Split& parts) {
  const Expr& x = parts.mantissa;
  if (x->dtype == DType::kF32) return log_to_base32(parts, {1.44269502, 1.92596303e-08, 1, 0});
  return fma(small_log(x), number(x, 1.4426950408889634), parts.exponent);
}

Expr log2(const Expr& x) { return logarithm(x, log2_of); }

Expr log10_of(const Split& parts) {
  return log_to_base32(parts, {0.434294492, -1.010305e-08, 0.301025391, 4.60503907e-06});
}

// Enough extra bits that powers of ten are exact.
Expr log10(const Expr& x) {
  if (x->dtype == DType::kF32) return logarithm(x, log10_of);
  constexpr double kFactor = 0.43429448190325182, kFactorLow = 1.098319650216765e-17;
  const Double value = precise_log(x);
  const Double product = exact_product(value.high, number(x, kFactor));
  const Expr low = fma(value.high, number(x, kFactorLow), fma(value.low, number(x, kFactor), product.low));
  return with_limits(x, product.high + low);
}

// log(u) for u = 1 + x, plus what was lost in rounding u.
Expr log1p(const Expr& x) {
  const Expr one = number(x, 1), zero = number(x, 0);
  const Expr u = x + one;
  const Expr lost = select(less(one, x), one - (u - x), x - (u - one));
  const Expr usable = both(less(zero, u), less(u, number(x, kInfinity)));
  const Expr result = log(u) + select(usable, lost / u, zero);
  return select(equal(x, zero), x, result);
}

Expr reciprocal_square_root(const Expr& x) { return number(x, 1) / unary(Unary::kSquareRoot, x); }

}  // namespace

Expr log(const Expr& x) { return logarithm(x, log_of); }

Expr power(const Expr& x, const Expr& y) {
  if (x->dtype == DType::kF64) return power_of(x, y, positive_power);
  const Expr exponent = log2_of_power32(split_normal(x), y);
  const Expr is_normal = both(less_equal(smallest_normal(x), x), less(x, number(x, kInfinity)));
  const Expr is_usual = both(is_normal, less_equal(absolute(exponent), number(exponent, 125)));
  return rarely(unary(Unary::kNot, is_usual), power_of(x, y, positive_power32), power_of_two32(exponent));
}

}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function reciprocal_square_root = {.name = "rsqrt",
                                                   .evaluate = [](double x) { return 1 / std::sqrt(x); },
                                                   .expand = math::reciprocal_square_root};
constinit const Function log = {
    .name = "log", .evaluate = [](double x) { return std::log(x); }, .expand = math::log};
constinit const Function log1p = {
    .name = "log1p", .evaluate = [](double x) { return std::log1p(x); }, .expand = math::log1p};
constinit const Function log2 = {
    .name = "log2", .evaluate = [](double x) { return std::log2(x); }, .expand = math::log2};
constinit const Function log10 = {
    .name = "log10", .evaluate = [](double x) { return std::log10(x); }, .expand = math::log10};

}  // namespace ingot::core::loops::functions
