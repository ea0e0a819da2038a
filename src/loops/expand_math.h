// SPDX-License-Identifier: Apache-2.0
// Math functions as polynomials in Loop IR itself, so that every target computes the same bits.
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// Leaves only primitive operations: functions, and kPower and kAtan2 of floats, are replaced. f32: at most 2
// ulp; f64: at most a few. NaN, infinities, signed zeros and subnormal numbers are as in C. sin, cos and tan
// of f64 lose precision beyond 2^52 quadrants; of f32 they are exact everywhere.
Expr expand_math(const Expr& expression);
Kernel expand_math(Kernel kernel);

}  // namespace ingot::core::loops
