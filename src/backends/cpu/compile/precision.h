// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::cpu {

// bf16 where the processor multiplies its pairs faster than f32; else narrow weights for products of few
// rows, whose time is that of reading weights.
PrecisionChoice choose_precision(const PrecisionSite& site, const Target& target);

}  // namespace ingot::core::cpu
