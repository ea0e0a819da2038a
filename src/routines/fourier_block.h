// SPDX-License-Identifier: Apache-2.0
// The Fourier transforms of a few lines at once, one in each lane of a vector.
#pragma once

#include <cstdint>
#include <vector>

namespace ingot::core::routines {

template <typename Real>
constexpr int64_t kFourierLanes = 32 / sizeof(Real);

// exp(2 pi i k / n) for k < n is at k * step.
template <typename Real>
struct FourierRoots {
  const Real* cosines;
  const Real* sines;
  int64_t n, step = 1;
};

// n numbers of each lane: element k of lane l is at k * lanes + l. Aligned to 32 bytes.
template <typename Real>
struct FourierBlock {
  Real* re;
  Real* im;
};

// The radices of a transform of n numbers, whose product is n: fours, twos, and the other prime factors.
std::vector<int64_t> fourier_radices(int64_t n);

// Forward transforms of `x`; `spare` is as large, and the result is in one of the two, which is returned.
template <typename Real>
FourierBlock<Real> transform_block(const std::vector<int64_t>& radices, const FourierRoots<Real>& roots,
                                   FourierBlock<Real> x, FourierBlock<Real> spare);

// The transform `x` of n = roots.n reals, n even, from that of n / 2 complex numbers, whose real parts are
// the numbers in even places and whose imaginary parts are the others. x gets n / 2 + 1 numbers.
template <typename Real>
void finish_reals(const FourierBlock<Real>& z, const FourierRoots<Real>& roots, const FourierBlock<Real>& x);
// The reverse, times 2.
template <typename Real>
void begin_reals(const FourierBlock<Real>& x, const FourierRoots<Real>& roots, const FourierBlock<Real>& z);

}  // namespace ingot::core::routines
