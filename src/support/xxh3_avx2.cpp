// SPDX-License-Identifier: Apache-2.0
#include "support/xxh3.h"

#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif
#define XXH_VECTOR XXH_AVX2
#define INGOT_XXH3_NAME xxh3_avx2
#include "support/xxh3.inc"
#if defined(__clang__)
#pragma clang attribute pop
#endif
#endif
