// SPDX-License-Identifier: Apache-2.0
// The limits of this machine, measured in the same process as the kernels: what one thread reaches in a tight
// loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "support/cpu_features.h"

namespace ingot::core {

// Runs independent multiply-adds in registers; returns the f32 operations done (two per multiply-add), 0 on
// processors without a probe.
double run_multiply_add_probe(CpuFeatures features, int64_t rounds);

// Reads all of `memory` once, in order.
void run_read_probe(std::span<const std::byte> memory);

}  // namespace ingot::core
