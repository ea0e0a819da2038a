// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Pad {  // elements before and after each dim; mode: constant, reflect, replicate, circular
  std::vector<Dim> low, high;
  double value = 0;
  std::string mode = "constant";
  static constexpr auto fields() {
    return std::tuple{Field{"low", &Pad::low}, Field{"high", &Pad::high}, Field{"value", &Pad::value},
                      Field{"mode", &Pad::mode}};
  }
};

struct Roll {  // element i moves to i + shift
  int64_t axis = 0;
  Dim shift = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &Roll::axis}, Field{"shift", &Roll::shift}};
  }
};

}  // namespace ingot::core::ops
