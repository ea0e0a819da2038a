// SPDX-License-Identifier: Apache-2.0
// Sliding windows over the spatial dims of [N, C, *spatial]: convolution and pooling.
#pragma once

#include <vector>

#include "ops/infer.h"
#include "ops/lowering.h"

namespace ingot::core::ops {

// Number of windows of `kernel` elements, `dilation` apart, along a dim padded on both sides. With
// `ceil_mode` the last window may be partial, but starts inside the dim or its low padding.
Dim window_count(const Dim& size, const Dim& kernel, int64_t stride, int64_t padding, int64_t dilation,
                 bool ceil_mode);

// Checks that every attribute list has one valid entry per spatial dim.
void require_window_attributes(const Node& node, size_t spatial, const std::vector<int64_t>& stride,
                               const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation);

// The position of kernel element `k` of window `i`, and a guard against positions outside of the dim; the
// guard is null if none can be outside.
struct WindowElement {
  Index place;
  Expr guard;
};
WindowElement window_element(const Shape& spatial, const Index& window, const Index& kernel,
                             const std::vector<int64_t>& stride, const std::vector<int64_t>& padding,
                             const std::vector<int64_t>& dilation, bool guarded);

inline Expr guarded(const Expr& guard, const Expr& value, const Expr& otherwise) {
  return guard ? loops::select(guard, value, otherwise) : value;
}
inline Shape spatial_dims(const Shape& shape) { return Shape(shape.begin() + 2, shape.end()); }

}  // namespace ingot::core::ops
