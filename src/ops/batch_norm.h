// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct BatchNorm {
  double epsilon = 1e-5;
  static constexpr auto fields() { return std::tuple{Field{"epsilon", &BatchNorm::epsilon}}; }
};

}  // namespace ingot::core::ops
