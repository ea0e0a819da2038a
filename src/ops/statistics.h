// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct ArgReduce {  // argmax, argmin
  int64_t axis = 0;
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"axis", &ArgReduce::axis}, Field{"keep_dims", &ArgReduce::keep_dims}};
  }
};

struct Variance {
  std::vector<int64_t> axes;  // sorted
  bool keep_dims = false;
  double correction = 1;
  static constexpr auto fields() {
    return std::tuple{Field{"axes", &Variance::axes}, Field{"keep_dims", &Variance::keep_dims},
                      Field{"correction", &Variance::correction}};
  }
};

struct Norm {
  double order = 2;           // may be infinite
  std::vector<int64_t> axes;  // sorted
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"order", &Norm::order}, Field{"axes", &Norm::axes},
                      Field{"keep_dims", &Norm::keep_dims}};
  }
};

}  // namespace ingot::core::ops
