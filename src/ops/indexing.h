// SPDX-License-Identifier: Apache-2.0
// Advanced indexing with several index tensors, shared by reading and writing.
#pragma once

#include "ir/graph.h"
#include "ops/lowering.h"

namespace ingot::core::ops {

// Shape of the index operands, from operand `first` on, after broadcasting.
Shape indices_shape(const Node& node, size_t first);
// Where the broadcast dims of the indices stand in x[i, :, j]: at the first indexed axis if these are
// neighbours, else in front.
size_t indices_position(const std::vector<int64_t>& axes);
// The shape of x[...], checked.
Shape indexed_shape(const Node& node, const std::vector<int64_t>& axes, size_t first);
// The index into operand 0 that belongs to `index` of x[...]; binds the indices, wrapping negative ones.
Index indexed_place(KernelBuilder& kernel, const Node& node, const std::vector<int64_t>& axes,
                    const Shape& indices, const Index& index, size_t first);

}  // namespace ingot::core::ops
