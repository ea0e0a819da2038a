// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Resize {
  std::vector<Dim> size;       // of the result, one entry per spatial dim
  std::vector<double> scale;   // result size / operand size if the model specified it; empty: from the sizes
  bool align_corners = false;  // linear only
  static constexpr auto fields() {
    return std::tuple{Field{"size", &Resize::size}, Field{"scale", &Resize::scale},
                      Field{"align_corners", &Resize::align_corners}};
  }
};

}  // namespace ingot::core::ops
