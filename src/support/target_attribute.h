// SPDX-License-Identifier: Apache-2.0
#pragma once

// Before a function that is written for a level of x86-64, and called where __builtin_cpu_supports it;
// undefined where compilers lack it. GCC inlines no more than what is marked always_inline into it.
#if defined(__x86_64__) && (defined(__linux__) || defined(_WIN32)) && defined(__GNUC__) && \
    !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INGOT_TARGET(level) __attribute__((target(level)))
#endif

#define INGOT_INLINE inline __attribute__((always_inline))
