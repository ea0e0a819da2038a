// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct NewShape {  // reshape, expand
  std::vector<Dim> shape;
  static constexpr auto fields() { return std::tuple{Field{"shape", &NewShape::shape}}; }
};

}  // namespace ingot::core::ops
