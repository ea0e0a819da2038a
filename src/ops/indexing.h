// SPDX-License-Identifier: Apache-2.0
// Advanced indexing with several index tensors, shared by reading and writing.
#pragma once

#include "ir/graph.h"
#include "ops/attributes.h"
#include "ops/lowering.h"

namespace ingot::core::ops {

// The shape of a slice of operand 0, checked: what is known of the slice lies in its dim.
Shape sliced_shape(const Node& node, const Slice& slice);
// Refuses indices into a dim of operand 0 that is known to be empty.
void require_places(const Node& node, int64_t axis, const Shape& indices);
// Operand 1 has an index along `axis` for each of its elements, elsewhere at the same place: it has the rank
// of operand 0, and no size there that is known to be larger.
void require_indices_along(const Node& node, int64_t axis);
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
