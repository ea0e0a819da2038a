// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "loops/kernel.h"

namespace ingot::core::loops {

// The same kernel with loops in storage order. Buffers become flat (one dim: the elements of their storage,
// without layouts; 4-bit dtypes are kept), loops over reshaped indices are split, the parallel loops are
// sorted by the first store's strides, and loops over adjacent elements are merged. The arguments are
// unchanged in memory.
//
//   y[n, c, h] = x[n, h, c] + 1, x row-major, y in the layout {0, 2, 1}:
//     flatten the buffers      y[(n*H + h)*C + c] = x[(n*H + h)*C + c] + 1   for n, c, h
//     drop loops of one point, split loops whose variable an index divides: i -> i.o * d + i.i
//     sort by the strides of the first store                                 for n, h, c
//     merge: stride(outer) = stride(inner) * extent(inner)                   for i < N*H*C: y[i] = x[i] + 1
Kernel order_for_storage(Kernel kernel);

}  // namespace ingot::core::loops
