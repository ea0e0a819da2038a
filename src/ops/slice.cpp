// SPDX-License-Identifier: Apache-2.0
#include "ops/slice.h"

#include "ops/infer.h"

namespace ingot::core::ops {

Shape sliced_shape(const Node& node, const Slice& slice) {
  Shape shape = node.operand_type(0).shape;
  require_axis(node, slice.axis, shape.size());
  require(slice.step > 0, node, "the step must be positive");
  Dim& size = shape[static_cast<size_t>(slice.axis)];
  const auto start = slice.start.constant(), end = slice.end.constant(), extent = size.constant();
  const bool outside =
      (start && *start < 0) || (start && end && *start > *end) || (end && extent && *end > *extent);
  if (outside)
    fail(node, "slice " + slice.start.to_string() + ":" + slice.end.to_string() + " leaves a dim of " +
                   size.to_string());
  size = ceil_divide(slice.end - slice.start, slice.step);
  return shape;
}

}  // namespace ingot::core::ops
