// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct GridSample {
  std::string mode = "bilinear";  // bilinear, nearest, bicubic
  std::string outside = "zeros";  // zeros, border, reflection
  bool align_corners = false;
  static constexpr auto fields() {
    return std::tuple{Field{"mode", &GridSample::mode}, Field{"outside", &GridSample::outside},
                      Field{"align_corners", &GridSample::align_corners}};
  }
};

}  // namespace ingot::core::ops
