// SPDX-License-Identifier: Apache-2.0
// Vectors of the lanes of Fourier transforms, and work on them in the widest instructions of the processor
// that give the same bits on all of them. Included by .cpp files alone.
#pragma once

#include "support/target_attribute.h"

// Vectors are passed to functions that are inlined without exception.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace ingot::core::routines {

template <typename Real>
struct FourierVectorOf {
  typedef Real Type __attribute__((vector_size(32), may_alias));  // NOLINT: only typedefs take it
  typedef Real Unaligned __attribute__((vector_size(32), may_alias, aligned(sizeof(Real))));  // NOLINT
};
template <typename Real>
using FourierVector = typename FourierVectorOf<Real>::Type;

// A 64-bit Windows stack is aligned to 16 bytes alone, which GCC forgets for vectors of 32. Without fused
// multiply-adds results are the same on all processors.
#if defined(INGOT_TARGET) && !defined(_WIN32)
template <typename Work>
INGOT_TARGET("avx2")
void run_wide(const Work& work) {
  work.apply();
}
template <typename Work>
void run_vectors(const Work& work) {
  static const bool is_wide = __builtin_cpu_supports("avx2") != 0;
  is_wide ? run_wide(work) : work.apply();
}
#else
template <typename Work>
void run_vectors(const Work& work) {
  work.apply();
}
#endif

}  // namespace ingot::core::routines
