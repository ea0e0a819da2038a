// SPDX-License-Identifier: Apache-2.0
// Stockham's form of the fast Fourier transform, which needs no reordering: with n = radix * m, a stage
// computes, for p < m, q < stride and j < radix,
//
//   y[q + stride * (radix * p + j)] = w(n, p * j) * sum over k of w(radix, j * k) * x[q + stride * (p + m *
//   k)]
//
// where w(n, e) = exp(-2 pi i e / n); then m takes the place of n, and stride * radix that of the stride.
// (P. N. Swarztrauber, FFT algorithms for vector computers, Parallel Computing 1, 1984.)
#include "routines/fourier_block.h"

#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "routines/fourier_vectors.h"
#include "routines/unrolled.h"

namespace ingot::core::routines {
namespace {

template <typename Real>
struct Number {
  using Vector = FourierVector<Real>;
  Vector re, im;

  friend INGOT_INLINE Number operator+(const Number& a, const Number& b) {
    return {a.re + b.re, a.im + b.im};
  }
  friend INGOT_INLINE Number operator-(const Number& a, const Number& b) {
    return {a.re - b.re, a.im - b.im};
  }
  friend INGOT_INLINE Number operator*(const Number& a, Real b) { return {a.re * b, a.im * b}; }
  INGOT_INLINE Number minus_i_times() const { return {im, -re}; }
  INGOT_INLINE Number conjugate() const { return {re, -im}; }
};

template <typename Real>
struct Root {
  Real cosine, sine;  // of w: cosine - i sine
};
template <typename Real>
INGOT_INLINE Number<Real> operator*(const Number<Real>& a, const Root<Real>& w) {
  return {a.re * w.cosine + a.im * w.sine, a.im * w.cosine - a.re * w.sine};
}

template <typename Real>
INGOT_INLINE Root<Real> root_of(const FourierRoots<Real>& roots, int64_t exponent) {
  return {roots.cosines[exponent * roots.step], roots.sines[exponent * roots.step]};
}
template <typename Real>
INGOT_INLINE Number<Real> load(const FourierBlock<Real>& block, int64_t at) {
  using Vector = FourierVector<Real>;
  return {reinterpret_cast<const Vector*>(block.re)[at], reinterpret_cast<const Vector*>(block.im)[at]};
}
template <typename Real>
INGOT_INLINE void store(const FourierBlock<Real>& block, int64_t at, const Number<Real>& number) {
  using Vector = FourierVector<Real>;
  reinterpret_cast<Vector*>(block.re)[at] = number.re;
  reinterpret_cast<Vector*>(block.im)[at] = number.im;
}

template <typename Real>
INGOT_INLINE void butterfly(const Number<Real> (&a)[2], Number<Real> (&b)[2]) {
  b[0] = a[0] + a[1];
  b[1] = a[0] - a[1];
}
template <typename Real>
INGOT_INLINE void butterfly(const Number<Real> (&a)[3], Number<Real> (&b)[3]) {
  const Number<Real> sum = a[1] + a[2], middle = a[0] - sum * Real(0.5);
  const Number<Real> turned = ((a[1] - a[2]) * (std::numbers::sqrt3_v<Real> / 2)).minus_i_times();
  b[0] = a[0] + sum;
  b[1] = middle + turned;
  b[2] = middle - turned;
}
template <typename Real>
INGOT_INLINE void butterfly(const Number<Real> (&a)[4], Number<Real> (&b)[4]) {
  const Number<Real> even = a[0] + a[2], odd = a[1] + a[3], difference = a[0] - a[2],
                     turned = (a[1] - a[3]).minus_i_times();
  b[0] = even + odd;
  b[1] = difference + turned;
  b[2] = even - odd;
  b[3] = difference - turned;
}
template <typename Real>
INGOT_INLINE void butterfly(const Number<Real> (&a)[5], Number<Real> (&b)[5]) {
  constexpr auto kCosine = Real(0.30901699437494742410), kCosine2 = Real(-0.80901699437494742410),
                 kSine = Real(0.95105651629515357212), kSine2 = Real(0.58778525229247312917);
  const Number<Real> s1 = a[1] + a[4], s2 = a[2] + a[3], d1 = a[1] - a[4], d2 = a[2] - a[3];
  const Number<Real> r1 = a[0] + s1 * kCosine + s2 * kCosine2, r2 = a[0] + s1 * kCosine2 + s2 * kCosine;
  const Number<Real> i1 = (d1 * kSine + d2 * kSine2).minus_i_times(),
                     i2 = (d1 * kSine2 - d2 * kSine).minus_i_times();
  b[0] = a[0] + s1 + s2;
  b[1] = r1 + i1;
  b[2] = r2 + i2;
  b[3] = r2 - i2;
  b[4] = r1 - i1;
}

// One stage. Its fields are copied where it runs: for all that the compiler knows, stores could change them.
template <typename Real>
struct Stage {
  FourierRoots<Real> roots;
  FourierBlock<Real> x, y;
  int64_t radix, m, stride;

  INGOT_INLINE void apply() const {
    switch (radix) {
      case 2:
        return run_fixed<2>(*this);
      case 3:
        return run_fixed<3>(*this);
      case 4:
        return run_fixed<4>(*this);
      case 5:
        return run_fixed<5>(*this);
      default:
        return run_any(*this);
    }
  }
  template <int kRadix>
  static INGOT_INLINE void run_fixed(const Stage stage) {
    const int64_t stride = stage.stride, distance = stride * stage.m;
    for (int64_t p = 0; p < stage.m; ++p) {
      Root<Real> w[kRadix];
      unrolled<kRadix>([&](auto j)
                           __attribute__((always_inline)) { w[j] = root_of(stage.roots, p * j * stride); });
      for (int64_t q = 0; q < stride; ++q) {
        Number<Real> a[kRadix], b[kRadix];
        const int64_t from = q + stride * p, to = q + stride * kRadix * p;
        unrolled<kRadix>([&](auto k)
                             __attribute__((always_inline)) { a[k] = load(stage.x, from + distance * k); });
        butterfly<Real>(a, b);
        store(stage.y, to, b[0]);
        unrolled<kRadix - 1>([&](auto i) __attribute__((always_inline)) {
          constexpr int j = i + 1;
          store(stage.y, to + stride * j, b[j] * w[j]);
        });
      }
    }
  }
  // radix * radix multiplications for `radix` numbers.
  static INGOT_INLINE void run_any(const Stage stage) {
    const auto [radix, m, stride] = std::tuple(stage.radix, stage.m, stage.stride);
    const int64_t step = stage.roots.n / radix;
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t q = 0; q < stride; ++q) {
        for (int64_t j = 0; j < radix; ++j) {
          Number<Real> sum = load(stage.x, q + stride * p);
          for (int64_t k = 1; k < radix; ++k)
            sum = sum + load(stage.x, q + stride * (p + m * k)) * root_of(stage.roots, j * k % radix * step);
          store(stage.y, q + stride * (radix * p + j), sum * root_of(stage.roots, p * j * stride));
        }
      }
    }
  }
};

// E[k] = (Z[k] + conj(Z[m - k])) / 2 and O[k] = (Z[k] - conj(Z[m - k])) / 2i are the transforms of the
// numbers in even and in odd places; X[k] = E[k] + w(2m, k) O[k].
template <typename Real>
struct FinishReals {
  FourierBlock<Real> z;
  FourierRoots<Real> roots;
  FourierBlock<Real> x;

  INGOT_INLINE void apply() const {
    const auto [z, roots, x] = *this;
    const int64_t m = roots.n / 2;
    for (int64_t k = 0; k <= m; ++k) {
      const Number<Real> a = load(z, k < m ? k : 0), b = load(z, k > 0 ? m - k : 0).conjugate();
      const Number<Real> odd = ((a - b) * Real(0.5)).minus_i_times() * root_of(roots, k);
      store(x, k, (a + b) * Real(0.5) + odd);
    }
  }
};

// The reverse, times 2: Z[k] = X[k] + conj(X[m - k]) + i (X[k] - conj(X[m - k])) / w(2m, k).
template <typename Real>
struct BeginReals {
  FourierBlock<Real> x;
  FourierRoots<Real> roots;
  FourierBlock<Real> z;

  INGOT_INLINE void apply() const {
    const auto [x, roots, z] = *this;
    const int64_t m = roots.n / 2;
    for (int64_t k = 0; k < m; ++k) {
      const Number<Real> a = load(x, k), b = load(x, m - k).conjugate();
      const Root<Real> w = root_of(roots, k);
      const Number<Real> odd = (a - b) * Root<Real>{w.cosine, -w.sine};
      store(z, k, (a + b) - odd.minus_i_times());
    }
  }
};

}  // namespace

std::vector<int64_t> fourier_radices(int64_t n) {
  std::vector<int64_t> radices;
  for (int64_t radix : {4, 2, 3, 5}) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  for (int64_t radix = 7; radix * radix <= n; radix += 2) {
    for (; n % radix == 0; n /= radix) radices.push_back(radix);
  }
  if (n > 1) radices.push_back(n);
  return radices;
}

template <typename Real>
FourierBlock<Real> transform_block(const std::vector<int64_t>& radices, const FourierRoots<Real>& roots,
                                   FourierBlock<Real> x, FourierBlock<Real> spare) {
  int64_t rest = roots.n, stride = 1;
  for (const int64_t radix : radices) {
    rest /= radix;
    run_vectors(Stage<Real>{roots, x, spare, radix, rest, stride});
    stride *= radix;
    std::swap(x, spare);
  }
  return x;
}

template <typename Real>
void finish_reals(const FourierBlock<Real>& z, const FourierRoots<Real>& roots, const FourierBlock<Real>& x) {
  run_vectors(FinishReals<Real>{z, roots, x});
}

template <typename Real>
void begin_reals(const FourierBlock<Real>& x, const FourierRoots<Real>& roots, const FourierBlock<Real>& z) {
  run_vectors(BeginReals<Real>{x, roots, z});
}

template FourierBlock<float> transform_block(const std::vector<int64_t>&, const FourierRoots<float>&,
                                             FourierBlock<float>, FourierBlock<float>);
template FourierBlock<double> transform_block(const std::vector<int64_t>&, const FourierRoots<double>&,
                                              FourierBlock<double>, FourierBlock<double>);
template void finish_reals(const FourierBlock<float>&, const FourierRoots<float>&,
                           const FourierBlock<float>&);
template void finish_reals(const FourierBlock<double>&, const FourierRoots<double>&,
                           const FourierBlock<double>&);
template void begin_reals(const FourierBlock<float>&, const FourierRoots<float>&, const FourierBlock<float>&);
template void begin_reals(const FourierBlock<double>&, const FourierRoots<double>&,
                          const FourierBlock<double>&);

}  // namespace ingot::core::routines
