// SPDX-License-Identifier: Apache-2.0
// Short notation for the expansions of functions, and those that several of them use. Arguments and results
// are f32 or f64.
#pragma once

#include <span>

#include "loops/kernel.h"
#include "loops/rarely.h"

namespace ingot::core::loops::math {

inline constexpr double kPi = 3.141592653589793, kPiLow = 1.2246467991473532e-16;
inline constexpr double kHalfPi32[] = {1.57079637, -4.37113883e-08,
                                       -1.71512451e-15};  // f32 whose sum is pi / 2

inline Expr operator+(const Expr& a, const Expr& b) { return binary(Binary::kAdd, a, b); }
inline Expr operator-(const Expr& a, const Expr& b) { return binary(Binary::kSubtract, a, b); }
inline Expr operator*(const Expr& a, const Expr& b) { return binary(Binary::kMultiply, a, b); }
inline Expr operator/(const Expr& a, const Expr& b) { return binary(Binary::kDivide, a, b); }
inline Expr operator-(const Expr& a) { return unary(Unary::kNegate, a); }
inline Expr less(const Expr& a, const Expr& b) { return binary(Binary::kLess, a, b); }
inline Expr less_equal(const Expr& a, const Expr& b) { return binary(Binary::kLessEqual, a, b); }
inline Expr equal(const Expr& a, const Expr& b) { return binary(Binary::kEqual, a, b); }
inline Expr both(const Expr& a, const Expr& b) { return binary(Binary::kAnd, a, b); }
inline Expr absolute(const Expr& a) { return unary(Unary::kAbsolute, a); }
inline Expr round_even(const Expr& a) { return unary(Unary::kRoundEven, a); }
inline Expr number(const Expr& like, double value) { return constant(like->dtype, value); }

Expr integer(const Expr& like, int64_t value);  // in the integer dtype of the same width as `like`
Expr bits_of(const Expr& value);                // bitcast to that dtype
Expr real_of(const Expr& bits);                 // and back
Expr polynomial(const Expr& x, std::span<const double> coefficients);  // highest power first
Expr with_sign_of(const Expr& magnitude, const Expr& sign);            // magnitude >= 0 or NaN
Expr power_of_two(const Expr& exponent);  // exponent: integer of the wanted width, normal results only
// value * 2^exponent for normal value and result; the upper bits of `exponent` are ignored.
Expr with_exponent_raised(const Expr& value, const Expr& exponent);
Expr through_f64(Expr (*function)(const Expr&), const Expr& x);  // f32: computed in f64 and rounded

Expr exp(const Expr& x);
// exp for |x| <= 80, without the handling of very large and very small results.
Expr moderate_exp(const Expr& x);
// exp of f32 for x <= 0, for scores of a softmax. Denormal numbers, and sums and products with them, would
// take a hundred times as long: where exp has one, this has the least normal number, about. Infinities times
// these are infinite, times 0 they are NaN. NaN stays.
Expr exp_or_zero(const Expr& x);
Expr power_of_two32(const Expr& exponent);        // 2^exponent, an f32, for an f64 in [-126, 127]
Expr moderate_exp2(const Expr& x);                // 2^x for f32, |x| <= 120, to 2^-23
Expr exp_of_sum(const Expr& x, const Expr& low);  // exp(x + low) for a low part of x
Expr log(const Expr& x);
Expr erf_below_one(const Expr& x);          // erf(x) of f64 for |x| <= 1
Expr scaled_erfc_above_one(const Expr& x);  // exp(x^2) erfc(x) of f64 for x >= 1
// Of x + low for f64 x >= 0, a quarter of pi at most for |low|, and much less where x < 2^48.
Expr sin_of_sum(const Expr& x, const Expr& low);
Expr cos_of_sum(const Expr& x, const Expr& low);
Expr power(const Expr& x, const Expr& y);
Expr atan2(const Expr& y, const Expr& x);

}  // namespace ingot::core::loops::math
