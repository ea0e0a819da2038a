// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Convert {
  DType dtype = DType::kF32;
  bool may_stay_wide = false;  // in a fused kernel: the program did not ask for the rounding
  static constexpr auto fields() {
    return std::tuple{Field{"dtype", &Convert::dtype}, Field{"may_stay_wide", &Convert::may_stay_wide}};
  }
};

struct Clamp {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  static constexpr auto fields() {
    return std::tuple{Field{"low", &Clamp::low}, Field{"high", &Clamp::high}};
  }
};

struct Triangle {  // keeps where column - row <= diagonal (upper: >=)
  int64_t diagonal = 0;
  bool upper = false;
  static constexpr auto fields() {
    return std::tuple{Field{"diagonal", &Triangle::diagonal}, Field{"upper", &Triangle::upper}};
  }
};

}  // namespace ingot::core::ops
