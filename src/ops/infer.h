// SPDX-License-Identifier: Apache-2.0
// What the shape rules of operators share. All errors are UserError, with the node and its source line.
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace ingot::core::ops {

using Types = std::vector<TensorType>;

[[noreturn]] void fail(const Node& node, std::string message, std::string advice = {});  // INGOT-U401
inline void require(bool condition, const Node& node, const char* message) {
  if (!condition) fail(node, message);
}

// The shape that all broadcast to, aligned at the right. A size of 1 gives way; other sizes must be equal.
Shape broadcast_shapes(const Node& node, const Shape& a, const Shape& b);
bool broadcasts_to(const Shape& from, const Shape& to);

void require_axis(const Node& node, int64_t axis, size_t rank);
void require_same_dtype(const Node& node);  // all present operands
void require_rank(const Node& node, size_t operand, size_t rank);
void require_shape(const Node& node, size_t operand, const Shape& shape);

// Rules that many ops have.
Types infer_same(const Node& node);            // the type of operand 0
Types infer_broadcast(const Node& node);       // operands of one dtype, broadcast
Types infer_broadcast_bool(const Node& node);  // likewise, result bool
Types infer_same_bool(const Node& node);       // shape of operand 0, bool

// `shape` with `axes` dropped, or kept as 1.
Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep_dims);

}  // namespace ingot::core::ops
