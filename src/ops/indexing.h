// SPDX-License-Identifier: Apache-2.0
// Advanced indexing with several index tensors, shared by reading and writing.
#pragma once

#include "ir/graph.h"
#include "ops/lowering.h"

namespace ingot::core::ops {

// Rejects indices into a dim of operand 0 that is known to be empty.
void require_places(const Node& node, int64_t axis, const Shape& indices);
// Operand 1 has an index along `axis` for each of its elements, at the same position in other dims: it has
// the rank of operand 0, and none of those dims is known to be larger.
void require_indices_along(const Node& node, int64_t axis);
// Shape of the index operands, starting with operand `first`, after broadcasting.
Shape indices_shape(const Node& node, size_t first);
// Position of the broadcast index dims in x[i, :, j]: the first indexed axis if the axes are adjacent,
// otherwise 0.
size_t indices_position(const std::vector<int64_t>& axes);
// The checked shape of x[...].
Shape indexed_shape(const Node& node, const std::vector<int64_t>& axes, size_t first);
// The index into operand 0 for `index` of x[...]; binds the indices, wrapping negative ones.
Index indexed_place(KernelBuilder& kernel, const Node& node, const std::vector<int64_t>& axes,
                    const Shape& indices, const Index& index, size_t first);

}  // namespace ingot::core::ops
