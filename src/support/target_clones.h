// SPDX-License-Identifier: Apache-2.0
#pragma once

// Before a function: GCC makes one version for each level of x86-64, and the loader picks one. Only where
// loaders can, and not under sanitizers, whose start-up the choice precedes.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INGOT_TARGET_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
// For functions that are written anew for a level, and chosen by hand; not defined where that cannot be.
#define INGOT_TARGET(level) __attribute__((target(level)))
#else
#define INGOT_TARGET_CLONES
#endif
