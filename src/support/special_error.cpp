// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include "support/special.h"

namespace ingot::core::special {
namespace {

constexpr double kSqrtPi = 1 / std::numbers::inv_sqrtpi;

// An x > 0 whose erfc is about y, for y < 1: Abramowitz and Stegun 26.2.23, to 5e-4.
double rough_inverse_erfc(double y) {
  const double t = std::sqrt(-2 * std::log(y / 2));
  const double x =
      t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
  return x / std::numbers::sqrt2;
}

// Halley's method; the error is cubed in each step.
double inverse_erfc(double y) {
  double x = rough_inverse_erfc(y);
  for (int step = 0; step < 3; ++step) {
    // (erfc(x) - y) over its derivative, without the factor that underflows.
    const double ratio = (std::exp(x * x + std::log(y)) - scaled_erfc(x)) * kSqrtPi / 2;
    x -= ratio / (1 + x * ratio);
  }
  return x;
}
double inverse_small_erf(double y) {
  double x = y * kSqrtPi / 2;
  for (int step = 0; step < 5; ++step) {
    const double ratio = (std::erf(x) - y) * std::exp(x * x) * kSqrtPi / 2;
    x -= ratio / (1 + x * ratio);
  }
  return x;
}

}  // namespace

double scaled_erfc(double x) {
  if (x < 25) {
    const double square = x * x;
    const double lost = square < 1000 ? std::fma(x, x, -square) : 0;  // beyond, exp is infinite
    return std::exp(square) * (1 + lost) * std::erfc(x);
  }
  const double s = 1 / (2 * x * x);
  double series = 1;
  for (int factor = 13; factor > 0; factor -= 2) series = 1 - factor * s * series;
  return series / x / kSqrtPi;
}

double inverse_erf(double y) {
  const double size = std::fabs(y);
  if (size == 1) return std::copysign(kInfinity, y);
  if (!(size < 1)) return kNan;
  if (size < 0.5) return inverse_small_erf(y);
  return std::copysign(inverse_erfc(1 - size), y);
}

double inverse_normal(double p) {
  if (p == 0) return -kInfinity;
  if (p == 1) return kInfinity;
  if (!(p > 0 && p < 1)) return kNan;
  const double centered = 2 * p - 1;  // exact around 1/2
  if (std::fabs(centered) < 0.5) return std::numbers::sqrt2 * inverse_small_erf(centered);
  const double size = inverse_erfc(2 * (p < 0.5 ? p : 1 - p)) * std::numbers::sqrt2;
  return p < 0.5 ? -size : size;
}

}  // namespace ingot::core::special
