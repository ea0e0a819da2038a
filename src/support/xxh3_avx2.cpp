// SPDX-License-Identifier: Apache-2.0
#include "support/xxh3.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>

#pragma GCC target("avx2")
#define XXH_VECTOR XXH_AVX2
#define INGOT_XXH3_NAME xxh3_avx2
#include "support/xxh3.inc"
#endif
