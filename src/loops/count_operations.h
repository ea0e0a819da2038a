// SPDX-License-Identifier: Apache-2.0
// How much a kernel's definition computes and reads, for profiles and rooflines.
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// Arithmetic operations: one per unary or binary function and per combined value, two per fused multiply-add.
// Comparisons, logic (of padding, for instance), selections, conversions and index arithmetic count nothing;
// both arms of a select count. A backend may need fewer (Winograd) or more (exp is one here).
Dim count_operations(const Kernel& kernel);

// Elements of `buffer` that the kernel loads, counting repeated loads.
Dim count_loads(const Kernel& kernel, int buffer);
// Elements of `buffer` that it stores.
Dim count_stores(const Kernel& kernel, int buffer);

}  // namespace ingot::core::loops
