// SPDX-License-Identifier: Apache-2.0
// The attribute of operators along one axis: softmax, concat, gather ... Axes are non-negative.
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Axis {  // softmax, log_softmax, concat, cumulative_sum, gather ...
  int64_t axis = 0;
  static constexpr auto fields() { return std::tuple{Field{"axis", &Axis::axis}}; }
};

}  // namespace ingot::core::ops
