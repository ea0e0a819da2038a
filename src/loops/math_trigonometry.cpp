// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions and their inverses. Coefficients are Chebyshev fits, computed with 60 digits.
#include <cmath>
#include <limits>
#include <vector>

#include "loops/functions.h"
#include "loops/math_expressions.h"

namespace ingot::core::loops::math {
namespace {

constexpr double kPi = 3.141592653589793, kPiLow = 1.2246467991473532e-16;

// (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4
constexpr double kSin32[] = {2.72493139e-06, -0.000198400827, 0.00833333191, -0.166666672};
constexpr double kCos32[] = {2.45474366e-05, -0.00138883002, 0.0416666642};
constexpr double kSin64[] = {-7.5865766484052611e-13, 1.6058529573291737e-10,  -2.5052106219528367e-08,
                             2.7557319219301936e-06,  -0.00019841269841265017, 0.0083333333333333315,
                             -0.16666666666666666};
constexpr double kCos64[] = {4.7458049232498398e-14,  -1.1470459750244853e-11, 2.0876755783897636e-09,
                             -2.7557319221382125e-07, 2.4801587301584618e-05,  -0.0013888888888888887,
                             0.041666666666666664};
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
constexpr double kAtan32[] = {-0.00182340189, 0.0110475281,  -0.0314244032, 0.0582032837, -0.0841763765,
                              0.109569542,    -0.142651275, 0.199986279,   -0.333333015};
constexpr double kAsin32[] = {0.0422117971, 0.0241520926, 0.0454760417, 0.0749525204, 0.166667536};
// pi / 2 and pi as sums of f32.
constexpr double kHalfPi32[] = {1.57079637, -4.37113883e-08, -1.71512451e-15};
constexpr double kPi32[] = {3.14159274, -8.74227766e-08};
constexpr double kHalfPi64[] = {1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33};
constexpr double kModerate32 = 0x1p17, kModerate64 = 0x1p48;  // the limits of angles that these reduce
// (tan(x) / x - 1) / x^2 in x^2 for |x| <= pi / 4
constexpr double kTan32[] = {0.00443174364, -2.72215511e-05, 0.0109321028, 0.0212430041,
                             0.054068014,   0.13332586,      0.333333522};
// 2 / pi in chunks of 28 bits: the product of each with an f32 is exact in f64.
constexpr double kTwoOverPi[] = {0.63661976903676987,    3.3308114738561656e-09, 2.276010047810136e-18,
                                 2.5268260189002822e-26, 1.6682867657019525e-34, 1.1588713282888551e-43,
                                 7.0539591744042953e-52};
constexpr int kPiecesBeyondFour = 5;  // chunks whose product with an f32 may exceed 4

struct ReducedAngle {
  Expr quadrant;  // n modulo 4 as an integer
  Expr rest;      // r in [-pi/4, pi/4]: x = n pi/2 + r
};

// Exact for every f32: multiples of 4 are dropped from each product before summation. `rest` is an f64.
ReducedAngle reduce_large32(const Expr& single) {
  const Expr x = convert(DType::kF64, single);
  std::vector<Expr> terms;
  for (int i = 0; i < static_cast<int>(std::size(kTwoOverPi)); ++i) {
    Expr term = x * number(x, kTwoOverPi[i]);
    if (i < kPiecesBeyondFour) term = fma(round_even(term * number(x, 0.25)), number(x, -4), term);
    terms.push_back(term);
  }
  Expr estimate = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) estimate = estimate + terms[i];
  const Expr whole = round_even(estimate);
  Expr rest = terms[0] - whole;  // exact, as are the next sums while they cancel
  for (size_t i = 1; i < terms.size(); ++i) rest = rest + terms[i];
  return {convert(DType::kI32, whole), rest * number(x, kPi / 2)};
}

// Adding `magic` rounds to an integer, which ends up in the low bits.
ReducedAngle reduce_by_parts(const Expr& x, std::span<const double> half_pi, double magic) {
  const Expr shifted = fma(x, number(x, 2 / kPi), number(x, magic));
  const Expr whole = shifted - number(x, magic);
  Expr rest = x;
  for (const double part : half_pi) rest = fma(whole, number(x, -part), rest);
  return {bits_of(shifted), rest};
}

// For |x| <= kModerate32: the first difference is exact.
ReducedAngle reduce_moderate32(const Expr& x) { return reduce_by_parts(x, kHalfPi32, 0x1.8p23); }

// 2 / pi in chunks of 53 bits. Row k begins at chunk 4 k, times 2^(212 k): for arguments beyond 2^(54 + 212
// k), all products with earlier chunks are multiples of 4.
constexpr double kTwoOverPi64[][9] = {
    {0.6366197723675813, 7.166494911215067e-17, 1.0181664387499708e-32, 8.452990443154843e-49,
     3.4861717801675248e-65, 4.800729353077565e-81, 1.1495476093063565e-98, 1.1768417630579854e-112,
     3.755703730400921e-129},
    {0.22946046207480975, 3.159848811581927e-17, 7.566343319885228e-35, 7.745993937431352e-49,
     2.472011041729188e-65, 1.0927083000745974e-80, 1.4089267913413553e-96, 1.6317415436184898e-112,
     6.652642202440155e-129},
    {0.16270821739654884, 7.192225950381832e-17, 9.273581824336576e-33, 1.0740152585578258e-48,
     4.378781224937064e-65, 5.301533847690217e-81, 9.465654527368431e-97, 7.375362343471485e-113,
     1.14338539146644e-128},
    {0.2882121784458589, 3.489479242866752e-17, 6.230311065125144e-33, 4.854476939231015e-49,
     7.525783489730073e-65, 1.5337643317716464e-80, 1.3301121656909596e-96, 2.0201261732196136e-112,
     1.4891862925785222e-128},
    {0.495348441190541, 1.0095264791147834e-16, 8.754822521571413e-33, 1.329650729758689e-48,
     9.801851324552917e-65, 6.473337917305273e-81, 1.4927914405464673e-96, 1.0922628789675798e-112,
     2.674645011210718e-129},
};

// For any f64: like reduce32, with double-double products.
ReducedAngle reduce_large64(const Expr& x) {
  const auto beyond = [&](size_t row) {
    return less(number(x, std::ldexp(1, 54 + 212 * static_cast<int>(row))), absolute(x));
  };
  const auto by_size = [&](const auto& of_row) {
    Expr value = number(x, of_row(0));
    for (size_t row = 1; row < std::size(kTwoOverPi64); ++row)
      value = select(beyond(row), number(x, of_row(row)), value);
    return value;
  };
  const auto modulo4 = [&](const Expr& term) {
    return fma(round_even(term * number(x, 0.25)), number(x, -4), term);
  };
  const Expr scaled = x * by_size([](size_t row) { return std::ldexp(1, -212 * static_cast<int>(row)); });
  std::vector<Expr> terms;
  for (size_t i = 0; i < std::size(kTwoOverPi64[0]); ++i) {
    const Expr piece = by_size([&](size_t row) { return kTwoOverPi64[row][i]; });
    const Expr product = scaled * piece;
    terms.push_back(modulo4(product));
    terms.push_back(modulo4(fma(scaled, piece, -product)));
  }
  Expr estimate = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) estimate = estimate + terms[i];
  const Expr whole = round_even(estimate);
  Expr high = terms[0] - whole, low = number(x, 0);
  for (size_t i = 1; i < terms.size(); ++i) {  // the rounding error of each sum is kept
    const Expr sum = high + terms[i];
    const Expr part = sum - high;
    low = low + ((high - (sum - part)) + (terms[i] - part));
    high = sum;
  }
  const Expr half_pi = number(x, kPi / 2);
  const Expr angle = high * half_pi;
  const Expr rest = fma(high, half_pi, -angle) + fma(high, number(x, kPiLow / 2), low * half_pi);
  return {convert(DType::kI64, whole), angle + rest};
}

// Accurate up to 2^51 quadrants; the parts of pi/2 add up to 160 bits.
ReducedAngle reduce_moderate64(const Expr& x) { return reduce_by_parts(x, kHalfPi64, 0x1.8p52); }

Expr small_sin(const Expr& rest) {
  const Expr square = rest * rest;
  const Expr tail = rest->dtype == DType::kF64 ? polynomial(square, kSin64) : polynomial(square, kSin32);
  return fma(rest * square, tail, rest);
}

Expr small_cos(const Expr& rest) {
  const Expr square = rest * rest;
  const Expr tail = rest->dtype == DType::kF64 ? polynomial(square, kCos64) : polynomial(square, kCos32);
  return fma(square * square, tail, fma(square, number(rest, -0.5), number(rest, 1)));
}

Expr bit_set(const Expr& value, int64_t bit) {
  return binary(Binary::kNotEqual, binary(Binary::kAnd, value, integer_constant(value->dtype, bit)),
                integer_constant(value->dtype, 0));
}

// The sign bit of an odd function of `x`.
Expr sign_bit(const Expr& x) {
  return binary(Binary::kAnd, bits_of(x), integer(x, x->dtype == DType::kF64 ? INT64_MIN : INT32_MIN));
}

// The sine or cosine of magnitude that reduced to `reduced`, with `sign` flipped by the quadrant.
Expr circular(const ReducedAngle& reduced, const Expr& sign, int64_t shift) {
  const Expr& rest = reduced.rest;
  const Expr quadrant = reduced.quadrant + integer(rest, shift);
  const Expr value = select(bit_set(quadrant, 1), small_cos(rest), small_sin(rest));
  const Expr second = binary(Binary::kAnd, quadrant, integer(rest, 2));
  const Expr flip =
      binary(Binary::kShiftLeft, second, integer(rest, rest->dtype == DType::kF64 ? 62 : 30));
  const Expr flipped = sign == nullptr ? flip : binary(Binary::kXor, flip, sign);
  return real_of(binary(Binary::kXor, bits_of(value), flipped));
}

// The function that `of` makes of a reduced angle. Reducing large ones takes most of the time, and they are rare.
template <typename Of>
Expr of_reduced(const Expr& magnitude, const Of& of) {
  const bool wide = magnitude->dtype == DType::kF64;
  const Expr is_large = less(number(magnitude, wide ? kModerate64 : kModerate32), magnitude);
  return rarely(is_large, of((wide ? reduce_large64 : reduce_large32)(magnitude)),
                of((wide ? reduce_moderate64 : reduce_moderate32)(magnitude)));
}

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

// An angle that reduced to an f64, for a function of f32.
ReducedAngle narrowed(const ReducedAngle& angle, DType dtype) {
  return {angle.quadrant, convert(dtype, angle.rest)};
}

Expr sin(const Expr& x) {
  return of_reduced(absolute(x), [&](const ReducedAngle& angle) {
    return circular(narrowed(angle, x->dtype), sign_bit(x), 0);
  });
}

Expr cos(const Expr& x) {
  return of_reduced(absolute(x), [&](const ReducedAngle& angle) {
    return circular(narrowed(angle, x->dtype), nullptr, 1);
  });
}

// tan of an angle, or -1 / tan, whose quotient is corrected by what it leaves and what rounding the tangent lost.
Expr tan32(const ReducedAngle& angle) {
  const Expr &rest = angle.rest, one = number(rest, 1);
  const Expr square = rest * rest;
  const Expr tail = rest * square * polynomial(square, kTan32);
  const Expr tangent = rest + tail;
  const Expr low = (rest - tangent) + tail;
  const Expr quotient = -one / tangent;
  const Expr left = fma(quotient, low, fma(quotient, tangent, one));
  return select(bit_set(angle.quadrant, 1), fma(quotient, left, quotient), tangent);
}

Expr tan(const Expr& x) {
  const Expr value = of_reduced(absolute(x), [&](const ReducedAngle& angle) {
    const Expr &rest = angle.rest, odd = bit_set(angle.quadrant, 1);
    if (rest->dtype == DType::kF32) return tan32(angle);
    const Expr sine = small_sin(rest), cosine = small_cos(rest);
    return convert(x->dtype, select(odd, -cosine, sine) / select(odd, sine, cosine));
  });
  return real_of(binary(Binary::kXor, bits_of(value), sign_bit(x)));
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

Expr asin32(const Expr& x) {
  const Expr magnitude = absolute(x), half = number(x, 0.5);
  const Expr is_small = less(magnitude, half);
  const Expr rest = (number(x, 1) - magnitude) * half;
  const Expr root = square_root(rest);
  const Expr tail =
      asin_tail32(select(is_small, magnitude, root), select(is_small, magnitude * magnitude, rest));
  const Expr low = tail + lost_of_root32(rest, root);
  const Expr large =
      precise_difference(number(x, kHalfPi32[0]), number(x, kHalfPi32[1]), root + root, low + low);
  return with_sign_of(select(is_small, magnitude + tail, large), x);
}

// base - factor (s + tail): pi/2 - asin(x), 2 asin(root) or pi - 2 asin(root).
Expr acos32(const Expr& x) {
  const Expr magnitude = absolute(x), half = number(x, 0.5), zero = number(x, 0);
  const Expr is_small = less(magnitude, half), is_negative = less(x, zero);
  const Expr rest = (number(x, 1) - magnitude) * half;
  const Expr root = square_root(rest);
  const Expr s = select(is_small, x, root);
  const Expr tail = asin_tail32(s, select(is_small, x * x, rest));
  const Expr low = select(is_small, tail, tail + lost_of_root32(rest, root));
  const auto choose = [&](double middle, double right, double left) {
    return select(is_small, number(x, middle), select(is_negative, number(x, left), number(x, right)));
  };
  const Expr factor = choose(1, -2, 2);
  return precise_difference(choose(kHalfPi32[0], 0, kPi32[0]), choose(kHalfPi32[1], 0, kPi32[1]), factor * s,
                            factor * low);
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

constinit const Function sin = {
    .name = "sin", .evaluate = [](double x) { return std::sin(x); }, .expand = math::sin};
constinit const Function cos = {
    .name = "cos", .evaluate = [](double x) { return std::cos(x); }, .expand = math::cos};
constinit const Function tan = {
    .name = "tan", .evaluate = [](double x) { return std::tan(x); }, .expand = math::tan};
constinit const Function asin = {
    .name = "asin", .evaluate = [](double x) { return std::asin(x); }, .expand = math::asin};
constinit const Function acos = {
    .name = "acos", .evaluate = [](double x) { return std::acos(x); }, .expand = math::acos};
constinit const Function atan = {
    .name = "atan", .evaluate = [](double x) { return std::atan(x); }, .expand = math::atan};

}  // namespace ingot::core::loops::functions
