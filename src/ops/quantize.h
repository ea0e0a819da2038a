// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

// minimum <= maximum, both numbers of `dtype`.
struct Quantize {
  DType dtype = DType::kU8;
  int64_t minimum = 0, maximum = 255;
  static constexpr auto fields() {
    return std::tuple{Field{"dtype", &Quantize::dtype}, Field{"minimum", &Quantize::minimum},
                      Field{"maximum", &Quantize::maximum}};
  }
};

}  // namespace ingot::core::ops
