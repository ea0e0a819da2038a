// SPDX-License-Identifier: Apache-2.0
// Attributes of the elementwise ops that have any.
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Gelu {
  bool approximate = false;  // by tanh
  static constexpr auto fields() { return std::tuple{Field{"approximate", &Gelu::approximate}}; }
};
struct Elu {
  double alpha = 1, scale = 1, input_scale = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"alpha", &Elu::alpha}, Field{"scale", &Elu::scale},
                      Field{"input_scale", &Elu::input_scale}};
  }
};
struct LeakyRelu {
  double slope = 0.01;
  static constexpr auto fields() { return std::tuple{Field{"slope", &LeakyRelu::slope}}; }
};
struct Softplus {
  double beta = 1, threshold = 20;
  static constexpr auto fields() {
    return std::tuple{Field{"beta", &Softplus::beta}, Field{"threshold", &Softplus::threshold}};
  }
};

}  // namespace ingot::core::ops
