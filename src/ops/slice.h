// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core::ops {

struct Slice {  // start <= index < end, both inside the operand
  int64_t axis = 0;
  Dim start = 0, end = 0;
  int64_t step = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Slice::axis}, Field{"start", &Slice::start}, Field{"end", &Slice::end},
                      Field{"step", &Slice::step}};
  }
};

// The shape of a slice of operand 0; checks the bounds as far as they are known.
Shape sliced_shape(const Node& node, const Slice& slice);

}  // namespace ingot::core::ops
