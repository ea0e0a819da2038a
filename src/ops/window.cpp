// SPDX-License-Identifier: Apache-2.0
#include "ops/window.h"

#include <algorithm>

namespace ingot::core::ops {

Dim window_count(const Dim& size, const Dim& kernel, int64_t stride, int64_t padding, int64_t dilation,
                 bool ceil_mode) {
  const Dim room = size + 2 * padding - Dim(dilation) * (kernel - 1) - 1;
  if (!ceil_mode) return core::floor_divide(room, stride) + 1;
  return core::minimum(ceil_divide(room, stride) + 1, core::floor_divide(size + padding - 1, stride) + 1);
}

void require_window_attributes(const Node& node, size_t spatial, const std::vector<int64_t>& stride,
                               const std::vector<int64_t>& padding, const std::vector<int64_t>& dilation) {
  const auto fits = [&](const std::vector<int64_t>& list, int64_t least) {
    return list.size() == spatial && std::ranges::all_of(list, [&](int64_t entry) { return entry >= least; });
  };
  require(fits(stride, 1), node, "the stride needs one positive entry per spatial dim");
  require(fits(padding, 0), node, "the padding needs one entry per spatial dim, not negative");
  require(fits(dilation, 1), node, "the dilation needs one positive entry per spatial dim");
}

WindowElement window_element(const Shape& spatial, const Index& window, const Index& kernel,
                             const std::vector<int64_t>& stride, const std::vector<int64_t>& padding,
                             const std::vector<int64_t>& dilation, bool guarded) {
  WindowElement element;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const Dim place = window[i] * Dim(stride[i]) - Dim(padding[i]) + kernel[i] * Dim(dilation[i]);
    element.place.push_back(place);
    if (!guarded && padding[i] == 0) continue;
    const Expr within = inside(place, 0, spatial[i]);
    element.guard = element.guard ? both(element.guard, within) : within;
  }
  return element;
}

}  // namespace ingot::core::ops
