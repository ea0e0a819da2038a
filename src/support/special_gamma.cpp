// SPDX-License-Identifier: Apache-2.0
#include <math.h>  // lgamma_r

#include <cmath>
#include <iterator>

#include "support/special.h"

namespace ingot::core::special {
namespace {

// B(2k) / (2k)!, of the Bernoulli numbers, for k from 1.
constexpr double kBernoulli[] = {1.0 / 12,          -1.0 / 720,
                                 1.0 / 30240,       -1.0 / 1209600,
                                 1.0 / 47900160,    -691.0 / 1307674368000,
                                 1.0 / 74724249600, -3617.0 / 10670622842880000};

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

}  // namespace ingot::core::special
