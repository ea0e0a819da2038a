// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// The same kernel with loops in storage order. Buffers become flat (one dim: the elements of their storage,
// without layouts; 4-bit dtypes are kept), loops over reshaped indices are split, the parallel loops are
// sorted by the first store's strides, and loops over adjacent elements are merged. The arguments are
// unchanged in memory.
Kernel order_for_storage(Kernel kernel);

}  // namespace ingot::core::loops
