// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::core {

// The user's bounds for one input dim: narrows a symbol's range and specifies the size to optimize for.
struct DimProfile {
  std::string input;  // name or position of the input
  std::vector<int64_t> min, typical, max;
};

}  // namespace ingot::core
