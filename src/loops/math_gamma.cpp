// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function and its derivative, in f64. Coefficients are Chebyshev fits, computed
// with 60 digits, or those of Stirling's series.
#include <span>

#include "loops/functions.h"
#include "loops/math_expressions.h"
#include "support/special.h"

namespace ingot::core::loops::math {
namespace {

// log(gamma(2 + t)) / t for |t| <= 1/2; the short one to the precision of f32
constexpr double kGamma32[] = {-0.00025056202146086634, 0.00057025125028297812, -0.0011874848136699278,
                               0.0028788686837407501,   -0.0073859208847835776, 0.0205816254365885,
                               -0.067352294090874079,   0.32246701804549948,    0.42278433509846714};
constexpr double kGamma64[] = {2.7475390051909664e-07,  -5.8112777689212462e-07, 9.2428522251622767e-07,
                               -1.9743106888421067e-06, 4.3828545383846668e-06,  -9.4562885151017192e-06,
                               2.0506019701747619e-05,  -4.4923727564247653e-05, 9.9457616921571331e-05,
                               -0.00022315497746292723, 0.00050966951965266728,  -0.0011927539009983087,
                               0.0028905103308659009,   -0.0073855510289355447,  0.02058080842778338,
                               -0.067352301053195639,   0.32246703342411322,     0.42278433509846714};
// B(2k) / (2k (2k - 1)) and B(2k) / 2k of the Bernoulli numbers, for k from 8 to 1
constexpr double kStirling[] = {-0.029550653594771242,  0.0064102564102564103,   -0.0019175269175269175,
                                0.00084175084175084175, -0.00059523809523809524, 0.00079365079365079365,
                                -0.0027777777777777778, 0.083333333333333333};
constexpr double kStirlingSlope[] = {-0.44325980392156863,   0.083333333333333333,   -0.021092796092796093,
                                     0.0075757575757575758,  -0.0041666666666666667, 0.0039682539682539683,
                                     -0.0083333333333333333, 0.083333333333333333};
// sin(pi f) / (pi f) and cos(pi f) in f^2 for |f| <= 1/2
constexpr double kSinePi[] = {2.4502943624559793e-07, -6.9720996608511995e-06, 0.00014842784141891028,
                              -0.002346080895463961,  0.026147847805550961,    -0.19075182412149617,
                              0.81174242528333933,    -1.6449340668482263,     1};
constexpr double kCosinePi[] = {4.1495644143027296e-06, -0.00010456655344408115, 0.0019295562725031743,
                                -0.025806888737006419,  0.23533063012953331,     -1.3352627688434471,
                                4.058712126416497,      -4.9348022005446768,     1};

// log(gamma(x)) for x >= 8.
Expr stirling(const Expr& x, const Expr& logarithm) {
  const Expr one = number(x, 1), inverse = one / x;
  const Expr series = inverse * polynomial(inverse * inverse, kStirling);
  const Expr shift = number(x, 0.91893853320467274 - 0.5);  // log(2 pi) / 2 - 1/2
  return fma(x - number(x, 0.5), logarithm - one, series + shift);
}

// log(gamma(x)) = log(gamma(2 + t)) + log(factors) for |t| <= 1/2 by gamma(x + 1) = x gamma(x); below 1.5,
// minus log(factors). t is exact, which counts beside the zeros at 1 and 2.
struct BesideTwo {
  Expr t, factors;
};
BesideTwo beside_two(const Expr& x) {
  constexpr int kSteps = 6;  // from 8
  const Expr one = number(x, 1), two = number(x, 2);
  Expr argument = x, factors = one;
  for (int step = 0; step < kSteps; ++step) {
    const Expr lower = argument - one, is_above = less_equal(number(x, 2.5), argument);
    argument = select(is_above, lower, argument);
    factors = select(is_above, factors * lower, factors);
  }
  const Expr is_least = less(x, number(x, 0.5)), is_less = less(x, number(x, 1.5));
  return {select(is_least, x, select(is_less, x - one, argument - two)),
          select(is_least, fma(x, x, x), select(is_less, x, factors))};
}

// For x > 0. `coefficients` of log(gamma(2 + t)) / t.
Expr positive_log_gamma(const Expr& x, std::span<const double> coefficients) {
  const Expr is_large = less_equal(number(x, 8), x);
  const BesideTwo near = beside_two(x);
  const Expr logarithm = log(select(is_large, x, near.factors));
  const Expr more = select(less(x, number(x, 1.5)), -logarithm, logarithm);
  return select(is_large, stirling(x, logarithm), fma(near.t, polynomial(near.t, coefficients), more));
}

// By gamma(-a) = -pi / (sin(pi a) gamma(1 + a)), where the terms cancel beside zeros: with all digits. All
// integers are poles.
Expr log_gamma_of(const Expr& x, std::span<const double> coefficients) {
  const Expr a = -x, zero = number(x, 0), f = a - round_even(a);
  const Expr sine = absolute(f) * polynomial(f * f, kSinePi);  // over pi
  const Expr reflected = -log(sine) - positive_log_gamma(a + number(x, 1), kGamma64);
  const Expr is_pole = equal(round_even(a), a);
  const Expr rare = select(is_pole, number(x, special::kInfinity), reflected);
  return rarely(less_equal(x, zero), rare, positive_log_gamma(x, coefficients));
}

Expr log_gamma(const Expr& x) {
  if (x->dtype == DType::kF64) return log_gamma_of(x, kGamma64);
  return convert(x->dtype, log_gamma_of(convert(DType::kF64, x), kGamma32));
}

// digamma(x + 1) = digamma(x) + 1 / x until the series converges; the sum of the inverses is one quotient.
Expr positive_digamma(const Expr& x, int steps) {
  const Expr one = number(x, 1), limit = number(x, steps);
  Expr argument = x, numerator = number(x, 0), denominator = one;
  for (int step = 0; step < steps; ++step) {
    const Expr is_below = less(argument, limit);
    numerator = select(is_below, fma(numerator, argument, denominator), numerator);
    denominator = select(is_below, denominator * argument, denominator);
    argument = select(is_below, argument + one, argument);
  }
  const Expr inverse = one / argument, square = inverse * inverse;
  const Expr series = fma(inverse, number(x, 0.5), square * polynomial(square, kStirlingSlope));
  return log(argument) - series - numerator / denominator;
}

// By digamma(x) = digamma(1 - x) - pi / tan(pi x); at integers NaN, at zeros infinite.
Expr digamma_of(const Expr& x, int steps) {
  const Expr zero = number(x, 0), f = x - round_even(x), square = f * f;
  const Expr tangent = f * polynomial(square, kSinePi) / polynomial(square, kCosinePi);  // over pi
  const Expr reflected = positive_digamma(number(x, 1) - x, steps) - number(x, 1) / tangent;
  const Expr at_pole =
      select(equal(x, zero), with_sign_of(number(x, special::kInfinity), -x), number(x, special::kNan));
  const Expr rare = select(equal(round_even(x), x), at_pole, reflected);
  return rarely(less_equal(x, zero), rare, positive_digamma(x, steps));
}

Expr digamma(const Expr& x) {
  if (x->dtype == DType::kF64) return digamma_of(x, 10);
  return convert(x->dtype, digamma_of(convert(DType::kF64, x), 5));
}

}  // namespace
}  // namespace ingot::core::loops::math

namespace ingot::core::loops::functions {

constinit const Function log_gamma = {
    .name = "log_gamma", .evaluate = special::log_gamma, .expand = math::log_gamma};
constinit const Function digamma = {.name = "digamma", .evaluate = special::digamma, .expand = math::digamma};

}  // namespace ingot::core::loops::functions
