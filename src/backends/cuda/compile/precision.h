// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::cuda {

// The first enabled of f16 and bf16 where tensor cores multiply it: four times as fast as f32 in parts of
// TF32, with half of the bytes.
PrecisionChoice choose_precision(const PrecisionSite& site, const Target& target);

}  // namespace ingot::core::cuda
