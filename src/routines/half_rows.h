// SPDX-License-Identifier: Apache-2.0
// Rows of halves as floats and back, by the processor's conversions of 8 at a time where it has them.
#pragma once

#include <cstdint>

#include "routines/widened.h"

namespace ingot::core::routines {

void widen_halves(const Half* from, int64_t count, float* to);
// Rounded to nearest, ties to even.
void narrow_halves(const float* from, int64_t count, Half* to);

}  // namespace ingot::core::routines
