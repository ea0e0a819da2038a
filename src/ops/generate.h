// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Full {  // `value` for floats, `integer` for integers and bools
  double value = 0;
  Dim integer = 0;
  DType dtype = DType::kF32;
  std::vector<Dim> shape;
  static constexpr auto fields() {
    return std::tuple{Field{"value", &Full::value}, Field{"integer", &Full::integer},
                      Field{"dtype", &Full::dtype}, Field{"shape", &Full::shape}};
  }
};

struct Iota {  // start + step * i for i < extent
  Dim start = 0, step = 1, extent = 0;
  DType dtype = DType::kI64;
  static constexpr auto fields() {
    return std::tuple{Field{"start", &Iota::start}, Field{"step", &Iota::step},
                      Field{"extent", &Iota::extent}, Field{"dtype", &Iota::dtype}};
  }
};

}  // namespace ingot::core::ops
