// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// The same kernel with loops that follow its storage. Buffers become flat (one dim: the elements of their
// storage, so that layouts are gone; four-bit dtypes stay as they are), loops over reshaped indices are
// split, the parallel loops are put in the order of the first store's strides, and loops that run over
// neighbours are made one. The arguments stay what they are in memory.
Kernel order_for_storage(Kernel kernel);

}  // namespace ingot::core::loops
