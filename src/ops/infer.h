// SPDX-License-Identifier: Apache-2.0
// Helpers of shape rules. All errors are UserError, with the node and its source line.
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

// The shape that all broadcast to, aligned at the right. Sizes of 1 are broadcast; other sizes must be equal.
Shape broadcast_shapes(const Node& node, const Shape& a, const Shape& b);
bool broadcasts_to(const Shape& from, const Shape& to);

void require_axis(const Node& node, int64_t axis, size_t rank);
void require_same_dtype(const Node& node);  // all present operands
void require_rank(const Node& node, size_t operand, size_t rank);
void require_shape(const Node& node, size_t operand, const Shape& shape);

// Shape rules that many ops share.
Types infer_same(const Node& node);            // the type of operand 0
Types infer_broadcast(const Node& node);       // operands of the same dtype, broadcast
Types infer_broadcast_bool(const Node& node);  // likewise, result bool
Types infer_same_bool(const Node& node);       // shape of operand 0, bool

// `shape` with `axes` removed, or kept with size 1.
Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep_dims);

}  // namespace ingot::core::ops
