// SPDX-License-Identifier: Apache-2.0
// What the machine can do, measured beside the kernels.
#pragma once

#include <cstdint>

#include "support/cpu_features.h"

namespace ingot::bench {

// Runs independent multiply-adds in registers on this thread; returns the f32 operations done (two a pair).
double run_multiply_add_probe(core::CpuFeatures features, int64_t rounds);

}  // namespace ingot::bench
