// SPDX-License-Identifier: Apache-2.0
// Special functions in f64, to about 1e-13 of the value, by series, continued fractions and quadrature rather
// than tables of coefficients. Values at poles and outside of the domain are torch's.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

namespace ingot::core::special {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
inline constexpr double kPi = std::numbers::pi;

// x = fraction * 2^exponent, with a fraction from 1/2 to below 1.
inline double fraction(double x) {
  int power = 0;
  return std::frexp(x, &power);
}
inline double exponent(double x) {
  int power = 0;
  std::frexp(x, &power);
  return std::isfinite(x) ? power : 0;
}

// Gamma functions (special_gamma.cpp).
double log_gamma(double x);
double digamma(double x);
double polygamma(double order, double x);  // `order` is an integer >= 0
double zeta(double x, double q);           // of Hurwitz: the sum over k of (q + k) to the power -x

// Error functions (special_error.cpp).
double scaled_erfc(double x);  // exp(x * x) * erfc(x)
double inverse_erf(double y);
double inverse_normal(double p);  // the x whose normal distribution function is p

// Bessel functions (special_bessel.cpp); `scaled` ones are multiplied by exp(-|x|), or exp(x) for k.
double bessel_j0(double x);
double bessel_j1(double x);
double bessel_y0(double x);
double bessel_y1(double x);
double bessel_i0(double x);
double bessel_i1(double x);
double scaled_bessel_i0(double x);
double scaled_bessel_i1(double x);
double bessel_k0(double x);
double bessel_k1(double x);
double scaled_bessel_k0(double x);
double scaled_bessel_k1(double x);
double airy(double x);

// Orthogonal polynomials of degree n, truncated to an integer; 0 for negative degrees. Above a million, only
// those of Chebyshev are numbers (special_polynomials.cpp).
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre(double x, double n);
double legendre(double x, double n);

}  // namespace ingot::core::special
