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

// The same for products of pairs of bf16 by matrix registers (AMX), which multiply bytes at twice the rate: 0
// on processors without them. Call request_cpu_features first.
double run_matrix_probe(CpuFeatures features, int64_t rounds);

// Reads `memory` once, in order, in whole blocks of kReadBlock bytes; the remainder is not read.
constexpr size_t kReadBlock = 256;
void run_read_probe(CpuFeatures features, std::span<const std::byte> memory);

}  // namespace ingot::core
