// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"

namespace ingot::core::ops {

struct SearchSorted {
  bool right = false;
  static constexpr int64_t kMostSteps = 48;  // a longer line does not fit into memory
  int64_t steps = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"right", &SearchSorted::right}, Field{"steps", &SearchSorted::steps}};
  }
};

}  // namespace ingot::core::ops
