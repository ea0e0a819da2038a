// SPDX-License-Identifier: Apache-2.0
// Inverses of the error function and of the normal distribution. Coefficients are Chebyshev fits, computed
// with 60 digits.
#include <cmath>

#include "loops/functions.h"
#include "loops/math_expressions.h"
#include "support/special.h"

namespace ingot::core::loops::math {
namespace {

constexpr double kSqrtPi = 1.7724538509055160;

// The r with erf(r) = x, divided by x, in w - 3.125 for w = -log(1 - x^2) <= 6.25; for larger w divided by x
// sqrt(w), in 1 / sqrt(w): up to sqrt(w) = 4.3 and 10.5, and in f64, where a step of Halley's method cubes
// the error, up to 6.1 and 27.5.
constexpr double kNear32[] = {2.35752833e-12,  6.67677608e-10,  -4.66282747e-09, -2.49025601e-08,
                              4.26101255e-07,  -1.38639688e-06, -1.3888333e-05,  0.000186781853,
                              -0.000740697749, -0.00603371064,  0.240158182,     1.65365457};
constexpr double kNear64[] = {-1.0232947239685765e-08, 3.243866533890821e-07,  -1.4936474723740794e-06,
                              -1.3144965677423612e-05, 0.00018707056290892098, -0.00074271247608978981,
                              -0.0060339141563702714,  0.24015965662050764,    1.6536545626831027};
constexpr double kFar32[] = {921.392311,  -2546.73703, 2996.9428,   -1960.96733, 781.997567,
                             -194.571821, 29.4887801,  -2.69284389, 1.1003277};
constexpr double kFurther32[] = {-12.5176831, 16.2171354,    -9.93194402, 4.22132962,
                                 -1.16339617, -0.0306783435, 1.00038491};
constexpr double kFar64[] = {-609.28219918249993, 1220.4505984425666,  -1035.4677410817241,
                             490.90425848763728,  -144.26475309258301, 28.058940528852798,
                             -3.7599531223130898, 0.12827586807438473, 0.99619489020372792};
constexpr double kFurther64[] = {-277805.56434794242,    316175.81338178692,  -161893.85835965388,
                                 49419.904610488029,     -10072.869675960001, 1464.3109691928202,
                                 -161.90952296286736,    15.893792261625355,  -1.7955524860085904,
                                 -0.0090374944542453166, 1.0000356604401494};
constexpr double kNearest = 6.25;  // the w of the first range

// x = erf(r) by the size of r and 1 - x^2, which is given since it would cancel.
struct Argument {
  Expr magnitude, complement;
};

Expr near_inverse(const Argument& x, const Expr& w) {
  const Expr centered = w - number(w, kNearest / 2);
  const bool wide = w->dtype == DType::kF64;
  return x.magnitude * (wide ? polynomial(centered, kNear64) : polynomial(centered, kNear32));
}

// In f64 also to the precision of f32, where these polynomials would lose four bits.
Expr far_inverse(const Argument& x, const Expr& w, bool is_single) {
  const Expr root = unary(Unary::kSquareRoot, w), inverse = number(w, 1) / root;
  const Expr far = is_single ? polynomial(inverse, kFar32) : polynomial(inverse, kFar64);
  const Expr further = is_single ? polynomial(inverse, kFurther32) : polynomial(inverse, kFurther64);
  return x.magnitude * root * select(less(root, number(w, is_single ? 4.3 : 6.1)), far, further);
}

Expr far_inverse32(const Argument& x, const Expr& w) {
  const auto wide = [](const Expr& value) { return convert(DType::kF64, value); };
  return convert(DType::kF32, far_inverse({wide(x.magnitude), wide(x.complement)}, wide(w), true));
}

// One step for erf(r) - x = 0, whose value over that of the derivative is `ratio`.
Expr halley(const Expr& r, const Expr& ratio) { return r - ratio / fma(r, ratio, number(r, 1)); }

// r < 6. Where erf(r) is near 1, the difference is one of complements.
Expr improved_near(const Argument& x, const Expr& r) {
  const Expr one = number(r, 1), power = moderate_exp(r * r), factor = number(r, kSqrtPi / 2);
  const Expr small = (erf_below_one(r) - x.magnitude) * power;
  const Expr large = x.complement / (one + x.magnitude) * power - scaled_erfc_above_one(r);
  return halley(r, select(less(r, one), small, large) * factor);
}

Expr improved_far(const Argument& x, const Expr& r) {
  const Expr root = exp(r * r * number(r, 0.5));  // exp(r^2) may overflow
  const Expr large = x.complement / (number(r, 1) + x.magnitude) * root * root - scaled_erfc_above_one(r);
  return halley(r, large * number(r, kSqrtPi / 2));
}

// The magnitude of the inverse.
Expr inverse(const Argument& x) {
  const Expr& u = x.complement;
  const Expr w = -log(u);
  const bool is_single = u->dtype == DType::kF32;
  Expr usual = near_inverse(x, w), rare = is_single ? far_inverse32(x, w) : far_inverse(x, w, false);
  if (!is_single) {
    usual = improved_near(x, usual);
    rare = improved_far(x, rare);
  }
  rare = select(equal(u, number(u, 0)), number(u, special::kInfinity), rare);
  return rarely(less(number(w, kNearest), w), rare, usual);
}

Expr inverse_erf(const Expr& x) {
  const Expr magnitude = absolute(x);
  return with_sign_of(inverse({magnitude, fma(-x, x, number(x, 1))}), x);
}

Expr inverse_normal(const Expr& p) {
  const Expr one = number(p, 1), centered = fma(number(p, 2), p, -one);
  const Expr complement = number(p, 4) * (p * (one - p));
  return with_sign_of(inverse({absolute(centered), complement}) * number(p, M_SQRT2), centered);
}

// exp(x^2) erfc(x)
Expr scaled_erfc64(const Expr& x) {
  const Expr one = number(x, 1), zero = number(x, 0), magnitude = absolute(x), square = x * x;
  const Expr near = less(magnitude, one);
  const Expr lost = fma(x, x, -square);
  const Expr rounded = exp(square), power = fma(rounded, lost, rounded);
  const Expr tail = select(near, power * (one - erf_below_one(magnitude)), scaled_erfc_above_one(magnitude));
  const Expr reflected = select(less(square, number(x, 710)), number(x, 2) * power - tail, rounded);
  return select(less(x, zero), reflected, tail);
}

Expr scaled_erfc(const Expr& x) {
  return x->dtype == DType::kF64 ? scaled_erfc64(x) : through_f64(scaled_erfc64, x);
}

}  // namespace
}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function inverse_erf = {
    .name = "inverse_erf", .evaluate = special::inverse_erf, .expand = math::inverse_erf};
constinit const Function inverse_normal = {
    .name = "inverse_normal", .evaluate = special::inverse_normal, .expand = math::inverse_normal};
constinit const Function scaled_erfc = {
    .name = "scaled_erfc", .evaluate = special::scaled_erfc, .expand = math::scaled_erfc};

}  // namespace ingot::core::loops::functions
