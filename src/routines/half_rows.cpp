// SPDX-License-Identifier: Apache-2.0
#include "routines/half_rows.h"

#include "support/target_attribute.h"

// Vectors of 32 bytes lie on the stack of callers that Windows does not align for them.
#if defined(INGOT_TARGET) && !defined(_WIN32)
#define INGOT_CONVERTS_HALVES
#include <immintrin.h>
#endif

namespace ingot::core::routines {
namespace {

#ifdef INGOT_CONVERTS_HALVES
constexpr int64_t kHalves = 8;
bool converts_halves() {
  static const bool has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("f16c") != 0;
  return has;
}

// Both return how many they converted: whole vectors.
INGOT_TARGET("avx2,f16c")
int64_t widen_vectors(const Half* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + kHalves <= count; i += kHalves) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(bits));
  }
  return i;
}
INGOT_TARGET("avx2,f16c")
int64_t narrow_vectors(const float* from, int64_t count, Half* to) {
  int64_t i = 0;
  for (; i + kHalves <= count; i += kHalves) {
    const __m128i bits = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), bits);
  }
  return i;
}
#else
bool converts_halves() { return false; }
int64_t widen_vectors(const Half*, int64_t, float*) { return 0; }
int64_t narrow_vectors(const float*, int64_t, Half*) { return 0; }
#endif

}  // namespace

void widen_halves(const Half* from, int64_t count, float* to) {
  for (int64_t i = converts_halves() ? widen_vectors(from, count, to) : 0; i < count; ++i)
    to[i] = widened(from[i]);
}
void narrow_halves(const float* from, int64_t count, Half* to) {
  for (int64_t i = converts_halves() ? narrow_vectors(from, count, to) : 0; i < count; ++i)
    to[i] = narrowed<Half>(from[i]);
}

}  // namespace ingot::core::routines
