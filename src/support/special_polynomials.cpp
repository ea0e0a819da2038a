// SPDX-License-Identifier: Apache-2.0
// By their recurrences of three terms.
#include <cmath>

#include "support/special.h"

namespace ingot::core::special {
namespace {

// Beyond this degree, recurrences give no number: their work is bounded, where torch's grows with the degree.
constexpr double kHighestDegree = 1e6;

// The polynomial of degree n whose first two are `first` and `second`; next(k, q, p) is that of degree k + 1
// by those of degree k and k - 1.
template <typename Next>
double recur(double n, double first, double second, const Next& next) {
  const double degree = std::trunc(n);
  if (!(degree >= 0)) return 0;
  if (degree > kHighestDegree) return kNan;
  if (degree == 0) return first;
  double before = first, last = second;
  for (double k = 1; k < degree && !std::isnan(last); ++k) {
    const double following = next(k, last, before);
    before = last;
    last = following;
  }
  return last;
}
double chebyshev(double x, double n, double second) {
  return recur(n, 1, second, [&](double, double q, double p) { return 2 * x * q - p; });
}

// High degrees are found by the angle, so that the work is bounded: real within [0, 1], imaginary above. What
// overflows is not a number, as by recurrence.
bool is_high(double n) { return n > 64; }
double if_finite(double value) { return std::isfinite(value) ? value : kNan; }

double ratio_of_cosines(double x, double times, double over) {
  const bool is_real = x <= 1;
  const double angle = is_real ? std::acos(x) : std::acosh(x);
  return is_real ? std::cos(times * angle) / std::cos(over * angle)
                 : if_finite(std::cosh(times * angle) / std::cosh(over * angle));
}
double ratio_of_sines(double x, double times, double over) {
  if (x == 1) return times / over;
  const bool is_real = x < 1;
  const double angle = is_real ? std::acos(x) : std::acosh(x);
  return is_real ? std::sin(times * angle) / std::sin(over * angle)
                 : if_finite(std::sinh(times * angle) / std::sinh(over * angle));
}
// By the value for -x: odd degrees change its sign.
double reflected(double x, double n, double value) {
  return x < 0 && std::fmod(std::trunc(n), 2) != 0 ? -value : value;
}

}  // namespace

double chebyshev_t(double x, double n) {
  if (!is_high(n)) return chebyshev(x, n, x);
  return reflected(x, n, ratio_of_cosines(std::fabs(x), std::trunc(n), 0));
}
double chebyshev_u(double x, double n) {
  if (!is_high(n)) return chebyshev(x, n, 2 * x);
  return reflected(x, n, ratio_of_sines(std::fabs(x), std::trunc(n) + 1, 1));
}
double chebyshev_v(double x, double n) {
  if (!is_high(n)) return chebyshev(x, n, 2 * x - 1);
  const auto ratio = x < 0 ? ratio_of_sines : ratio_of_cosines;
  return reflected(x, n, ratio(std::fabs(x), std::trunc(n) + 0.5, 0.5));
}
double chebyshev_w(double x, double n) {
  if (!is_high(n)) return chebyshev(x, n, 2 * x + 1);
  const auto ratio = x < 0 ? ratio_of_cosines : ratio_of_sines;
  return reflected(x, n, ratio(std::fabs(x), std::trunc(n) + 0.5, 0.5));
}
double hermite_h(double x, double n) {
  return recur(n, 1, 2 * x, [&](double k, double q, double p) { return 2 * x * q - 2 * k * p; });
}
double hermite_he(double x, double n) {
  return recur(n, 1, x, [&](double k, double q, double p) { return x * q - k * p; });
}
double laguerre(double x, double n) {
  if (x == 0 && std::trunc(n) >= 0) return 1;
  return recur(n, 1, 1 - x,
               [&](double k, double q, double p) { return ((2 * k + 1 - x) * q - k * p) / (k + 1); });
}
double legendre(double x, double n) {
  if (std::fabs(x) == 1 && std::trunc(n) >= 0) return reflected(x, n, 1);
  return recur(n, 1, x,
               [&](double k, double q, double p) { return ((2 * k + 1) * x * q - k * p) / (k + 1); });
}

}  // namespace ingot::core::special
