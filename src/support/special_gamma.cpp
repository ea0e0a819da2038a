// SPDX-License-Identifier: Apache-2.0
#include <math.h>  // lgamma_r

#include <cmath>
#include <iterator>
#include <numbers>
#include <optional>

#include "support/special.h"

namespace ingot::core::special {
namespace {

// B(2k) / (2k)!, of the Bernoulli numbers, for k from 1.
constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                 1.0 / 30240,       -1.0 / 1209600,
                                 1.0 / 47900160,    -691.0 / 1307674368000,
                                 1.0 / 74724249600, -3617.0 / 10670622842880000};

// u - log(1 + u) for u = (x - a) / a, by its power series where that cancels.
double logarithm_excess(double a, double x) {
  const double u = (x - a) / a;
  if (std::fabs(u) > 0.3) return u - std::log(x / a);
  double power = u * u, sum = 0;
  for (double k = 2; std::fabs(power) > sum * kEpsilon; ++k, power *= -u) sum += power / k;
  return sum;
}

// x to the power a, times exp(-x) / gamma(a). For large a by Stirling's series: the logarithms would cancel.
// What is smaller than normal numbers is 0, as torch's.
double incomplete_scale(double a, double x) {
  constexpr double kLarge = 20, kSmallestLogarithm = -709.782712893384;
  if (a < kLarge) {
    const double power = a * std::log(x) - x - log_gamma(a);
    return power < kSmallestLogarithm ? 0 : std::exp(power);
  }
  double power = 1 / a, factorial = 1, stirling = 0;  // B(2k) / (2k (2k - 1) a^(2k-1))
  for (size_t k = 0; k < std::size(kBernoulli); ++k, power /= a * a) {
    stirling += kBernoulli[k] * factorial * power;
    factorial *= static_cast<double>((2 * k + 2) * (2 * k + 1));
  }
  return std::sqrt(a / (2 * kPi)) * std::exp(-a * logarithm_excess(a, x) - stirling);
}

// The sum of x^k / ((a + 1) ... (a + k)).
double lower_series(double a, double x) {
  const double scale = incomplete_scale(a, x);
  if (scale == 0) return 0;
  double term = 1, sum = 1;
  for (double k = 1; term > sum * kEpsilon; ++k) sum += term *= x / (a + k);
  return sum * scale / a;
}

// Highest power first: (-1)^k zeta(k) / k of log(gamma(1 + a)) for k from 24 to 2, and Euler's constant.
constexpr double kLogGamma[] = {
    0.04166666915034121, -0.04347826605304026, 0.04545455629320467,  -0.047619070330142226,
    0.05000004769810169, -0.05263167937961666, 0.055555767627403614, -0.058823978658684585,
    0.06250095514121304, -0.06666870588242046, 0.07143294629536133,  -0.0769325164113522,
    0.083353840546109,   -0.09095401714582904, 0.1000994575127818,   -0.11133426586956469,
    0.12550966952474304, -0.1440498967688461,  0.1695571769974082,   -0.20738555102867398,
    0.27058080842778454, -0.40068563438653143, 0.8224670334241132,   -std::numbers::egamma};

// log(gamma(1 + a)), also where 1 + a is 1.
double log_gamma_beside_one(double a) {
  if (a > 0.2) return log_gamma(a + 1);
  double sum = 0;
  for (const double coefficient : kLogGamma) sum = sum * a + coefficient;
  return sum * a;
}

// The power series of the upper function, for small x.
double upper_series(double a, double x) {
  double factor = 1, sum = 0, term = 1;
  for (double n = 1; n == 1 || std::fabs(term) > std::fabs(sum) * kEpsilon; ++n) {
    factor *= -x / n;
    sum += term = factor / (a + n);
  }
  const double power = a * std::log(x) - log_gamma_beside_one(a);
  return -std::expm1(power) - a * std::exp(power) * sum;
}

// A convergent of a continued fraction. Both parts have the same recurrence, which needs no division.
struct Convergent {
  double numerator, denominator;
  Convergent after(const Convergent& last, double a, double b) const {
    return {b * numerator + a * last.numerator, b * denominator + a * last.denominator};
  }
  bool equals(const Convergent& other) const {
    const double product = numerator * other.denominator;
    return std::fabs(product - other.numerator * denominator) <= std::fabs(product) * kEpsilon;
  }
  Convergent times(double factor) const { return {numerator * factor, denominator * factor}; }
};

// The continued fraction of the upper function: for x >= a.
double upper_fraction(double a, double x) {
  constexpr double kLarge = 0x1p400;  // whose square times 1e20 is finite
  const double scale = incomplete_scale(a, x);
  if (scale == 0) return 0;
  double b = x + 1 - a;
  Convergent last{0, 1}, current{1, b};
  for (double k = 1; k < 1e6; ++k) {
    b += 2;
    const Convergent next = current.after(last, -k * (k - a), b);
    last = current, current = next;
    if (current.equals(last)) break;
    if (std::fabs(current.denominator) > kLarge)
      last = last.times(1 / kLarge), current = current.times(1 / kLarge);
  }
  return current.numerator / current.denominator * scale;
}

// Temme's uniform expansion, to its second term: for large a. `side` 1: the upper function, -1: the lower.
double expanded_gamma(double a, double x, double side) {
  const double u = (x - a) / a, eta = std::copysign(std::sqrt(2 * logarithm_excess(a, x)), u);
  const double c = std::fabs(eta) < 1e-3 ? eta / 12 - 1.0 / 3 : 1 / u - 1 / eta;
  const double rest = std::exp(-a * eta * eta / 2) * c / std::sqrt(2 * kPi * a);
  return 0.5 * std::erfc(side * eta * std::sqrt(a / 2)) + side * rest;
}
constexpr double kLargeOrder = 1e7;

// For finite positive a and x: whichever of the ways above converges, and does not cancel (Cephes' choice).
double upper_of(double a, double x) {
  if (a > kLargeOrder) return expanded_gamma(a, x, 1);
  if (x > 1.1) return x < a ? 1 - lower_series(a, x) : upper_fraction(a, x);
  const bool is_lower_small = x <= 0.5 ? -0.4 / std::log(x) < a : x * 1.1 < a;
  return is_lower_small ? 1 - lower_series(a, x) : upper_series(a, x);
}
double lower_of(double a, double x) {
  constexpr double kShortSeries = 8;    // up to here the series is faster than the fraction
  constexpr double kSmallOrder = 1e-3;  // below, its scale may underflow
  if (a > kLargeOrder) return expanded_gamma(a, x, -1);
  const bool is_short = x <= 1 || (x <= kShortSeries && a >= kSmallOrder);
  return !is_short && x > a ? 1 - upper_of(a, x) : lower_series(a, x);
}

// torch's values where either is 0, infinite, negative or not a number; nullopt elsewhere. The
// upper function has 1 less that.
std::optional<double> lower_at_edge(double a, double x) {
  if (x < 0 || a < 0 || (a == 0 && !(x > 0)) || (std::isinf(a) && std::isinf(x))) return kNan;
  if (a == 0) return 1;
  if (x == 0 || std::isinf(a)) return 0;
  if (std::isinf(x)) return 1;
  return std::isnan(a) || std::isnan(x) ? std::optional(kNan) : std::nullopt;
}

// The derivative of digamma, reflected at 1/2.
double trigamma(double x) {
  if (x == kInfinity) return 0;
  if (x >= 0.5) return zeta(2, x);
  const double sine = std::sin(kPi * x);
  return kPi * kPi / (sine * sine) - zeta(2, 1 - x);
}

}  // namespace

double log_gamma(double x) {
#ifdef _WIN32
  return std::lgamma(x);
#else
  int sign;  // std::lgamma writes a global one
  return ::lgamma_r(x, &sign);
#endif
}

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x == -kInfinity || (x < 0 && x == std::floor(x))) return kNan;
  if (x == kInfinity) return x;
  if (x < 0) return digamma(1 - x) - kPi / std::tan(kPi * (x - std::round(x)));
  double shift = 0;
  for (; x < 10; ++x) shift += 1 / x;
  // The sum of B(2k) / (2k x^2k).
  const double square = 1 / (x * x);
  double power = 1, factorial = 1, sum = 0;
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    factorial *= k == 0 ? 1 : static_cast<double>(2 * k * (2 * k + 1));
    sum += kBernoulli[k] * factorial * (power *= square);
  }
  return std::log(x) - 0.5 / x - sum - shift;
}

double polygamma(double order, double x) {
  if (order == 0) return digamma(x);
  if (order == 1) return trigamma(x);
  const double sign = std::fmod(order, 2) == 0 ? -1 : 1;
  return sign * std::exp(log_gamma(order + 1)) * zeta(order + 1, x);
}

// Hurwitz's zeta function; Euler and Maclaurin's formula for all but the first terms.
double zeta(double x, double q) {
  if (x == 1) return kInfinity;
  if (x < 1 || std::isnan(q)) return kNan;
  if (q <= 0) {
    if (q == std::floor(q)) return kInfinity;
    if (x != std::floor(x)) return kNan;  // a power of a negative number
  }
  if (std::isinf(q) || std::isnan(x)) return kNan;  // as torch's
  if (q < -30 && std::isinf(x)) return kInfinity;
  if (q < -30) {  // the terms below 0 are those of 1 - fraction that 1 - q has not
    const double fraction = q - std::floor(q), sign = std::fmod(x, 2) == 0 ? 1 : -1;
    return zeta(x, fraction) + sign * zeta(x, 1 - fraction) - sign * zeta(x, 1 - q);
  }
  double sum = 0, a = q;
  for (int k = 0; k < 12 || a < 12; ++k, ++a) {
    const double term = std::pow(a, -x);
    sum += term;
    if (a > 0 && std::fabs(term) < sum * kEpsilon * 1e-3) return sum;
  }
  const double power = std::pow(a, -x);
  if (power == 0 && std::isfinite(x)) return sum;
  sum += power * a / (x - 1) + 0.5 * power;
  double factor = x * power / a;
  for (size_t k = 0; k < std::size(kBernoulli); ++k) {
    sum += kBernoulli[k] * factor;
    const auto at = static_cast<double>(2 * k + 1);
    factor *= (x + at) * (x + at + 1) / (a * a);
  }
  return sum;
}

double lower_gamma(double a, double x) {
  const auto edge = lower_at_edge(a, x);
  return edge ? *edge : lower_of(a, x);
}
double upper_gamma(double a, double x) {
  const auto edge = lower_at_edge(a, x);
  return edge ? 1 - *edge : upper_of(a, x);
}

}  // namespace ingot::core::special
