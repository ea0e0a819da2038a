// SPDX-License-Identifier: Apache-2.0
// Inverses of trigonometric functions. Coefficients are Chebyshev fits, computed with 60 digits.
#include <cmath>
#include <limits>

#include "loops/functions.h"
#include "loops/math_expressions.h"

namespace ingot::core::loops::math {
namespace {

constexpr double kPi32[] = {3.14159274, -8.74227766e-08};  // whose sum is pi
// (atan(x) / x - 1) / x^2 in x^2 for |x| <= tan(pi / 8); (asin(x) / x - 1) / x^2 for |x| <= 1/2
constexpr double kAtan[] = {-0.013905374533113234, 0.030622995553735516,  -0.041038875468626869,
                            0.047192591882420927,  -0.052580202726567583, 0.058819230561140225,
                            -0.066666418691311832, 0.076923067291948963,  -0.090909090668160802,
                            0.11111111110751482,   -0.1428571428571149,   0.19999999999999993,
                            -0.33333333333333331};
constexpr double kAsin[] = {0.02877844261259304,   -0.014881409392818066, 0.017419357964884856,
                            0.0054508781877205502, 0.010324318288744113,  0.011478952690257387,
                            0.013971235301124539,  0.017352391265909227,  0.022372173002005596,
                            0.030381944137085216,  0.04464285714637338,   0.074999999999984246,
                            0.16666666666666669};
// The same for f32: |x| <= 1 and |x| <= 1/2
constexpr double kAtan32[] = {-0.00182340189, 0.0110475281, -0.0314244032, 0.0582032837, -0.0841763765,
                              0.109569542,    -0.142651275, 0.199986279,   -0.333333015};
constexpr double kAsin32[] = {0.0422117971, 0.0241520926, 0.0454760417, 0.0749525204, 0.166667536};

// asin(x) for |x| <= 1/2
Expr small_asin(const Expr& x) {
  const Expr square = x * x;
  return fma(x * square, polynomial(square, kAsin), x);
}

Expr square_root(const Expr& x) { return unary(Unary::kSquareRoot, x); }

// atan(n / d) for 0 <= n, 0 <= d, not both zero or infinite.
Expr positive_atan(const Expr& n, const Expr& d) {
  const Expr one = number(n, 1);
  const Expr steep = less(d, n);  // above pi/4: pi/2 - atan(d / n)
  const Expr low = select(steep, d, n), high = select(steep, n, d);
  // Above pi/8: pi/4 + atan((t - 1) / (t + 1)).
  const Expr middle = less(number(n, 0.41421356237309503), low / high);
  const Expr ratio = low / high;
  const Expr t = select(middle, (ratio - one) / (ratio + one), ratio);
  const Expr square = t * t;
  const Expr small = fma(t * square, polynomial(square, kAtan), t);
  const Expr zero = number(n, 0);
  const Expr eighth = select(middle, number(n, kPi / 4), zero),
             eighth_low = select(middle, number(n, kPiLow / 4), zero);
  const Expr angle = eighth + (small + eighth_low);
  return select(steep, number(n, kPi / 2) - (angle - number(n, kPiLow / 2)), angle);
}

// high - (part + low) for high >= |part|, where `high_low` was lost in rounding `high`.
Expr precise_difference(const Expr& high, const Expr& high_low, const Expr& part, const Expr& low) {
  const Expr difference = high - part;
  const Expr lost = (high - difference) - part;
  return difference + (lost + high_low - low);
}

// sqrt(square) - root, to an eighth: subtracting the bits approximates the reciprocal.
Expr lost_of_root32(const Expr& square, const Expr& root) {
  const Expr reciprocal = real_of(integer(root, 0x7ef311c7) - bits_of(root));
  return fma(-root, root, square) * (number(root, 0.5) * reciprocal);
}

// asin(s) - s, where |s| <= 1/2
Expr asin_tail32(const Expr& s, const Expr& square) { return s * square * polynomial(square, kAsin32); }

// asin(angle) = angle + tail, where |angle| <= 1/2: of x, or where |x| is larger of sqrt((1 - |x|) / 2),
// whose lost bits `root_tail` has too. `small` is x or |x|.
struct HalfAngle32 {
  Expr is_small, root, angle, tail, root_tail;
};
HalfAngle32 half_angle32(const Expr& x, const Expr& small) {
  const Expr magnitude = absolute(x), half = number(x, 0.5);
  const Expr is_small = less(magnitude, half);
  const Expr square = (number(x, 1) - magnitude) * half;
  const Expr root = square_root(square);
  const Expr angle = select(is_small, small, root);
  const Expr tail = asin_tail32(angle, select(is_small, small * small, square));
  return {is_small, root, angle, tail, tail + lost_of_root32(square, root)};
}

Expr asin32(const Expr& x) {
  const Expr magnitude = absolute(x);
  const HalfAngle32 found = half_angle32(x, magnitude);
  const Expr large = precise_difference(number(x, kHalfPi32[0]), number(x, kHalfPi32[1]),
                                        found.root + found.root, found.root_tail + found.root_tail);
  return with_sign_of(select(found.is_small, magnitude + found.tail, large), x);
}

// base - factor (angle + tail): pi/2 - asin(x), 2 asin(root) or pi - 2 asin(root).
Expr acos32(const Expr& x) {
  const HalfAngle32 found = half_angle32(x, x);
  const Expr is_negative = less(x, number(x, 0));
  const auto choose = [&](double middle, double right, double left) {
    return select(found.is_small, number(x, middle), select(is_negative, number(x, left), number(x, right)));
  };
  const Expr factor = choose(1, -2, 2), low = select(found.is_small, found.tail, found.root_tail);
  return precise_difference(choose(kHalfPi32[0], 0, kPi32[0]), choose(kHalfPi32[1], 0, kPi32[1]),
                            factor * found.angle, factor * low);
}

// atan(t) - t for 0 <= t <= 1
Expr atan_tail32(const Expr& t) {
  const Expr square = t * t;
  const Expr scaled = t * polynomial(square, kAtan32);
  return fma(scaled, square, scaled * fma(t, t, -square));
}

Expr atan32(const Expr& x) {
  const Expr magnitude = absolute(x), one = number(x, 1);
  const Expr is_steep = less(one, magnitude);
  const Expr t = select(is_steep, one / magnitude, magnitude);
  const Expr tail = atan_tail32(t);
  const Expr steep = precise_difference(number(x, kHalfPi32[0]), number(x, kHalfPi32[1]), t, tail);
  return with_sign_of(select(is_steep, steep, t + tail), x);
}

Expr asin(const Expr& x) {
  if (x->dtype == DType::kF32) return asin32(x);
  const Expr magnitude = absolute(x), half = number(x, 0.5);
  // pi/2 - 2 asin(sqrt((1 - x) / 2)); beyond 1 the root is NaN.
  const Expr root = square_root((number(x, 1) - magnitude) * half);
  const Expr is_small = less(magnitude, half);
  const Expr small = small_asin(select(is_small, magnitude, root));
  const Expr large = number(x, kPi / 2) - (small + small - number(x, kPiLow / 2));
  return with_sign_of(select(is_small, small, large), x);
}

Expr acos(const Expr& x) {
  if (x->dtype == DType::kF32) return acos32(x);
  const Expr magnitude = absolute(x), half = number(x, 0.5);
  const Expr root = square_root((number(x, 1) - magnitude) * half);
  const Expr is_small = less(magnitude, half);
  const Expr small = small_asin(select(is_small, x, root));
  const Expr twice = small + small;
  const Expr near_middle = number(x, kPi / 2) - (small - number(x, kPiLow / 2));
  const Expr near_minus_one = number(x, kPi) - (twice - number(x, kPiLow));
  return select(is_small, near_middle, select(less(x, number(x, 0)), near_minus_one, twice));
}

Expr atan(const Expr& x) {
  if (x->dtype == DType::kF32) return atan32(x);
  const Expr infinity = number(x, std::numeric_limits<double>::infinity());
  const Expr magnitude = absolute(x);
  const Expr angle =
      select(equal(magnitude, infinity), number(x, kPi / 2), positive_atan(magnitude, number(x, 1)));
  return with_sign_of(angle, x);
}

// base +- (t + tail) for t = low / high, where `base` is 0, pi/2 or pi. For usual quotients: 1 / high is
// normal, and both are numbers.
Expr moderate_atan2(const Expr& y, const Expr& x) {
  const Expr above = absolute(y), beside = absolute(x), zero = number(x, 0);
  const Expr is_steep = less(beside, above), is_left = less(x, zero);
  const Expr low = select(is_steep, beside, above), high = select(is_steep, above, beside);
  const Expr t = low / high;
  const Expr reciprocal = real_of(integer(x, 0x7ef311c7) - bits_of(high));
  const Expr lost = fma(-t, high, low) * reciprocal;  // of the quotient, to an eighth
  const Expr slope = fma(t * t, number(x, -0.5), number(x, 1));
  const Expr tail = fma(lost, slope, atan_tail32(t));
  const auto choose = [&](int part) {
    return select(is_steep, number(x, kHalfPi32[part]), select(is_left, number(x, kPi32[part]), zero));
  };
  const Expr falls = binary(Binary::kNotEqual, is_steep, is_left);
  const Expr sign = select(falls, number(x, 1), number(x, -1));
  return with_sign_of(precise_difference(choose(0), choose(1), sign * t, sign * tail), y);
}

}  // namespace

Expr atan2(const Expr& y, const Expr& x) {
  if (x->dtype == DType::kF32) {
    const Expr size = absolute(x) + absolute(y);
    const Expr is_usual = both(less(number(x, 0x1p-100), size), less(size, number(x, 0x1p100)));
    const Expr wide = convert(DType::kF32, atan2(convert(DType::kF64, y), convert(DType::kF64, x)));
    return rarely(unary(Unary::kNot, is_usual), wide, moderate_atan2(y, x));
  }
  const Expr zero = number(x, 0), one = number(x, 1);
  const Expr infinity = number(x, std::numeric_limits<double>::infinity());
  const Expr above = absolute(y), beside = absolute(x);
  // Both infinite counts as equal, both zero as on the axis.
  const Expr both_infinite = both(equal(above, infinity), equal(beside, infinity));
  const Expr both_zero = both(equal(above, zero), equal(beside, zero));
  const Expr n = select(both_infinite, one, above);
  const Expr d = select(binary(Binary::kOr, both_infinite, both_zero), one, beside);
  const Expr angle = positive_atan(n, d);
  const Expr left = less(with_sign_of(one, x), zero);
  const Expr result = select(left, number(x, kPi) - (angle - number(x, kPiLow)), angle);
  const Expr is_nan = unary(Unary::kNot, both(equal(x, x), equal(y, y)));
  return select(is_nan, number(x, std::numeric_limits<double>::quiet_NaN()), with_sign_of(result, y));
}

}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function asin = {
    .name = "asin", .evaluate = [](double x) { return std::asin(x); }, .expand = math::asin};
constinit const Function acos = {
    .name = "acos", .evaluate = [](double x) { return std::acos(x); }, .expand = math::acos};
constinit const Function atan = {
    .name = "atan", .evaluate = [](double x) { return std::atan(x); }, .expand = math::atan};

}  // namespace ingot::core::loops::functions
