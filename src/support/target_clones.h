// SPDX-License-Identifier: Apache-2.0
#pragma once

// Before a function: GCC compiles one version per level of x86-64, and the loader picks one. Only if the
// loader supports it, and not under sanitizers, which start too late for the resolvers.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INGOT_TARGET_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
// For functions written separately for a level, and selected by hand; undefined where that is not supported.
#define INGOT_TARGET(level) __attribute__((target(level)))
#else
#define INGOT_TARGET_CLONES
#endif
