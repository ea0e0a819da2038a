// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// A kernel that moves floats of 8 or 16 bits, and computes nothing but signs on them, moves integers of that
// width instead: nothing is widened and rounded again, and NaN keeps its bits. Other kernels are returned
// unchanged.
Kernel move_bits(Kernel kernel);

}  // namespace ingot::core::loops
