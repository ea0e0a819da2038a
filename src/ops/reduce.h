// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct Reduce {
  std::vector<int64_t> axes;  // sorted
  bool keep_dims = false;
  static constexpr auto fields() {
    return std::tuple{Field{"axes", &Reduce::axes}, Field{"keep_dims", &Reduce::keep_dims}};
  }
};

}  // namespace ingot::core::ops
