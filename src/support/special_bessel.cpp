// SPDX-License-Identifier: Apache-2.0
#include <math.h>  // j0, which is not in std

#include <algorithm>
#include <cmath>
#include <numbers>

#include "support/special.h"

#ifdef _WIN32
extern "C" {  // of its C library, whose header hides them from strict C++
double _j0(double);
double _j1(double);
double _y0(double);
double _y1(double);
}
#endif

namespace ingot::core::special {
namespace c_library {
#ifdef _WIN32
constexpr auto j0 = ::_j0, j1 = ::_j1, y0 = ::_y0, y1 = ::_y1;
#else
using ::j0, ::j1, ::y0, ::y1;
#endif
}  // namespace c_library
namespace {

// exp(-x) times I of order 0 or 1, for x >= 0: its power series, all of whose terms are positive, then its
// expansion at infinity, whose terms decrease until they are smaller than exp(-2x).
double scaled_i(double order, double x) {
  constexpr double kLarge = 30;
  double term = 1, sum = 1;
  if (x < kLarge) {
    for (double k = 1; term > sum * kEpsilon; ++k) sum += term *= x * x / (4 * k * (k + order));
    return sum * std::exp(-x) * (order == 0 ? 1 : x / 2);
  }
  if (std::isinf(x)) return 0;
  for (double k = 1; std::fabs(term) > kEpsilon; ++k) {
    const double odd = 2 * k - 1;
    sum += term *= (odd * odd - 4 * order * order) / (8 * k * x);
  }
  return sum / (std::sqrt(2 * kPi) * std::sqrt(x));  // 2 pi x may overflow
}

// exp(x) times K of any order, for finite x >= 0.3: the integral over t of exp(-x (cosh(t) - 1)) cosh(order
// t). The trapezoidal rule has an error of exp(-2 pi^2 / (step^2 x)).
double integrated_k(double order, double x) {
  const double step = std::min(0.06, 0.7 / std::sqrt(x));
  double sum = 0.5;
  for (double t = step;; t += step) {
    const double half = std::sinh(t / 2);
    const double term = std::exp(-2 * (x * half * half)) * std::cosh(order * t);
    sum += term;
    if (term < kEpsilon * kEpsilon) return sum * step;
  }
}

// The power series of K, for x <= 1.
double series_k0(double x) {
  const double square = x * x / 4, start = std::numbers::ln2 - std::log(x) - std::numbers::egamma;
  double term = 1, sum = start, harmonic = 0;
  for (double k = 1; term > kEpsilon; ++k) {
    term *= square / (k * k);
    harmonic += 1 / k;
    sum += term * (start + harmonic);
  }
  return sum;
}
// By the Wronskian: I0 K1 + I1 K0 = 1 / x.
double series_k1(double x) { return (1 / x - bessel_i1(x) * series_k0(x)) / bessel_i0(x); }

double scaled_k(int order, double x) {
  if (x == 0) return kInfinity;
  if (!(x > 0)) return kNan;
  if (std::isinf(x)) return 0;
  if (x > 1) return integrated_k(order, x);
  return std::exp(x) * (order == 0 ? series_k0(x) : series_k1(x));
}

// Ai by its power series, in long double for its cancellation.
double airy_series(double x) {
  const long double cube = static_cast<long double>(x) * x * x;
  long double f = 1, g = x, f_sum = 1, g_sum = x;
  for (int k = 1; k < 200; ++k) {
    f *= cube / ((3 * k - 1) * (3 * k));
    g *= cube / ((3 * k) * (3 * k + 1));
    f_sum += f;
    g_sum += g;
    if (std::fabs(f) + std::fabs(g) < 1e-22L * (std::fabs(f_sum) + std::fabs(g_sum))) break;
  }
  constexpr long double kAtZero = 0.355028053887817239260063186004183L;
  constexpr long double kSlope = 0.258819403792806798405183560189204L;
  return static_cast<double>(kAtZero * f_sum - kSlope * g_sum);
}

// Ai for x below -9, by its expansion at minus infinity.
double airy_oscillating(double x) {
  const double z = -x, zeta = 2.0 / 3 * z * std::sqrt(z);
  double u = 1, even = 1, odd = 0;
  for (int k = 1; k < 30; ++k) {
    const double next = u * (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / (216.0 * k * (2 * k - 1)) / zeta;
    if (std::fabs(next) > std::fabs(u) || std::fabs(next) < kEpsilon) break;
    u = next;
    (k % 2 == 0 ? even : odd) += k % 4 < 2 ? u : -u;
  }
  const double angle = zeta - kPi / 4;
  return (std::cos(angle) * even + std::sin(angle) * odd) / (std::sqrt(kPi) * std::sqrt(std::sqrt(z)));
}

}  // namespace

// At infinity they are not numbers, as torch's.
double bessel_j0(double x) { return std::isinf(x) ? kNan : c_library::j0(x); }
double bessel_j1(double x) { return std::isinf(x) ? kNan : c_library::j1(x); }
double bessel_y0(double x) { return x < 0 || std::isinf(x) ? kNan : c_library::y0(x); }
double bessel_y1(double x) { return x < 0 || std::isinf(x) ? kNan : c_library::y1(x); }

double scaled_bessel_i0(double x) { return std::isnan(x) ? x : scaled_i(0, std::fabs(x)); }
double scaled_bessel_i1(double x) {  // 0 for -0, as torch's
  if (std::isnan(x)) return x;
  const double value = scaled_i(1, std::fabs(x));
  return x < 0 ? -value : value;
}
double bessel_i0(double x) {
  return scaled_bessel_i0(x) * std::exp(std::fabs(x));
}  // NaN at infinity, as torch's
double bessel_i1(double x) { return scaled_bessel_i1(x) * std::exp(std::fabs(x)); }
double scaled_bessel_k0(double x) { return scaled_k(0, x); }
double scaled_bessel_k1(double x) { return scaled_k(1, x); }
double bessel_k0(double x) { return scaled_k(0, x) * (std::isinf(x) ? 1 : std::exp(-x)); }
double bessel_k1(double x) { return scaled_k(1, x) * (std::isinf(x) ? 1 : std::exp(-x)); }

double airy(double x) {
  if (!std::isfinite(x)) return kNan;  // at infinity too, as torch's
  constexpr double kVanishing = 110;   // exp(-2 / 3 * 110^1.5) is 0
  if (x > kVanishing) return 0;
  if (x < -9) return airy_oscillating(x);
  if (x < 2) return airy_series(x);
  const double zeta = 2.0 / 3 * x * std::sqrt(x);
  return std::exp(-zeta) * std::sqrt(x / 3) / kPi * integrated_k(1.0 / 3, zeta);
}

}  // namespace ingot::core::special
