// SPDX-License-Identifier: Apache-2.0
#include "support/xxh3.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx2")
#define XXH_VECTOR XXH_AVX2
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace ingot::core {

Checksum xxh3_avx2(Bytes data) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(data.data(), data.size()));
  Checksum result;
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

}  // namespace ingot::core
#endif
