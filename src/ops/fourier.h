// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Fourier {  // results are multiplied with `scale`; `inverse`: the exponent is positive
  int64_t axis = 0;
  bool inverse = false;
  double scale = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Fourier::axis}, Field{"inverse", &Fourier::inverse},
                      Field{"scale", &Fourier::scale}};
  }
};

// Forward from reals to half a spectrum, or backward.
struct RealFourier {
  int64_t axis = 0;
  double scale = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &RealFourier::axis}, Field{"scale", &RealFourier::scale}};
  }
};

}  // namespace ingot::core::ops
