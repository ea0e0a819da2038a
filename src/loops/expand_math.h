// SPDX-License-Identifier: Apache-2.0
// Math functions as polynomials in Loop IR itself, so that every target computes the same bits.
#pragma once

#include "loops/functions.h"
#include "loops/kernel.h"

namespace ingot::core::loops {

// Leaves only primitive operations: functions, and kPower and kAtan2 of floats, are replaced. f32: at most 2
// ulp; f64: at most a few, also for large angles. NaN, infinities, signed zeros and subnormal numbers are as
// in C.
Expr expand_math(const Expr& expression);
Kernel expand_math(Kernel kernel);
// But for calls of functions that the target computes by itself.
Kernel expand_math(Kernel kernel, bool (*computes)(const Function& function, DType dtype));

}  // namespace ingot::core::loops
