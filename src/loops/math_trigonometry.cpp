// SPDX-License-Identifier: Apache-2.0
// Trigonometric functions. Coefficients are Chebyshev fits, computed with 60 digits.
#include <cmath>
#include <limits>
#include <vector>

#include "loops/functions.h"
#include "loops/math_expressions.h"

namespace ingot::core::loops::math {
namespace {

// (sin(r) / r - 1) / r^2 and (cos(r) - 1 + r^2 / 2) / r^4 in r^2 for |r| <= pi / 4
constexpr double kSin32[] = {2.72493139e-06, -0.000198400827, 0.00833333191, -0.166666672};
constexpr double kCos32[] = {2.45474366e-05, -0.00138883002, 0.0416666642};
constexpr double kSin64[] = {-7.5865766484052611e-13, 1.6058529573291737e-10,  -2.5052106219528367e-08,
                             2.7557319219301936e-06,  -0.00019841269841265017, 0.0083333333333333315,
                             -0.16666666666666666};
constexpr double kCos64[] = {4.7458049232498398e-14,  -1.1470459750244853e-11, 2.0876755783897636e-09,
                             -2.7557319221382125e-07, 2.4801587301584618e-05,  -0.0013888888888888887,
                             0.041666666666666664};
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
  const Expr flip = binary(Binary::kShiftLeft, second, integer(rest, rest->dtype == DType::kF64 ? 62 : 30));
  const Expr flipped = sign == nullptr ? flip : binary(Binary::kXor, flip, sign);
  return real_of(binary(Binary::kXor, bits_of(value), flipped));
}

// The function that `of` makes of a reduced angle. Reducing large ones takes most of the time, and they are
// rare.
template <typename Of>
Expr of_reduced(const Expr& magnitude, const Of& of) {
  const bool wide = magnitude->dtype == DType::kF64;
  const Expr is_large = less(number(magnitude, wide ? kModerate64 : kModerate32), magnitude);
  return rarely(is_large, of((wide ? reduce_large64 : reduce_large32)(magnitude)),
                of((wide ? reduce_moderate64 : reduce_moderate32)(magnitude)));
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

// tan of an angle, or -1 / tan, whose quotient is corrected by what it leaves and what rounding the tangent
// lost.
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

Expr circular_of_sum(const Expr& x, const Expr& low, int64_t shift) {
  return of_reduced(x, [&](const ReducedAngle& angle) {
    return circular({angle.quadrant, angle.rest + low}, nullptr, shift);
  });
}

}  // namespace

Expr sin_of_sum(const Expr& x, const Expr& low) { return circular_of_sum(x, low, 0); }
Expr cos_of_sum(const Expr& x, const Expr& low) { return circular_of_sum(x, low, 1); }

}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function sin = {
    .name = "sin", .evaluate = [](double x) { return std::sin(x); }, .expand = math::sin};
constinit const Function cos = {
    .name = "cos", .evaluate = [](double x) { return std::cos(x); }, .expand = math::cos};
constinit const Function tan = {
    .name = "tan", .evaluate = [](double x) { return std::tan(x); }, .expand = math::tan};
}  // namespace ingot::core::loops::functions
