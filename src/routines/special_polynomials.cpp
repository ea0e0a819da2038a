// SPDX-License-Identifier: Apache-2.0
// By their recurrences of three terms.
#include <cmath>

#include "routines/special.h"

namespace ingot::core::routines::special {
namespace {

// The polynomial of degree n whose first two are `first` and `second`; next(k, q, p) is that of degree k + 1
// by those of degree k and k - 1.
template <typename Next>
double recur(double n, double first, double second, const Next& next) {
  const double degree = std::trunc(n);
  if (!(degree >= 0)) return 0;
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

// Within [-1, 1], by the angle for high degrees, so that the work is bounded.
bool is_high(double x, double n) { return n > 64 && std::fabs(x) < 1; }

}  // namespace

double chebyshev_t(double x, double n) {
  if (is_high(x, n)) return std::cos(std::trunc(n) * std::acos(x));
  return chebyshev(x, n, x);
}
double chebyshev_u(double x, double n) {
  if (!is_high(x, n)) return chebyshev(x, n, 2 * x);
  const double angle = std::acos(x);
  return std::sin((std::trunc(n) + 1) * angle) / std::sin(angle);
}
double chebyshev_v(double x, double n) {
  if (!is_high(x, n)) return chebyshev(x, n, 2 * x - 1);
  const double angle = std::acos(x);
  return std::cos((std::trunc(n) + 0.5) * angle) / std::cos(angle / 2);
}
double chebyshev_w(double x, double n) {
  if (!is_high(x, n)) return chebyshev(x, n, 2 * x + 1);
  const double angle = std::acos(x);
  return std::sin((std::trunc(n) + 0.5) * angle) / std::sin(angle / 2);
}
double hermite_h(double x, double n) {
  return recur(n, 1, 2 * x, [&](double k, double q, double p) { return 2 * x * q - 2 * k * p; });
}
double hermite_he(double x, double n) {
  return recur(n, 1, x, [&](double k, double q, double p) { return x * q - k * p; });
}
double laguerre(double x, double n) {
  return recur(n, 1, 1 - x,
               [&](double k, double q, double p) { return ((2 * k + 1 - x) * q - k * p) / (k + 1); });
}
double legendre(double x, double n) {
  return recur(n, 1, x,
               [&](double k, double q, double p) { return ((2 * k + 1) * x * q - k * p) / (k + 1); });
}

}  // namespace ingot::core::routines::special
