// SPDX-License-Identifier: Apache-2.0
// The Fourier transforms of a few lines at once, one in each lane of a vector.
#pragma once

#include <cstdint>
#include <vector>

namespace ingot::core::routines {

template <typename Real>
constexpr int64_t kFourierLanes = 32 / sizeof(Real);

// exp(2 pi i k / n) for k < n.
template <typename Real>
struct FourierRoots {
  const Real* cosines;
  const Real* sines;
  int64_t n;
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

}  // namespace ingot::core::routines
