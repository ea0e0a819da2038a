// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace ingot::core {

// Whether a node may join a region, and why not. `reason` is a literal.
struct FusionAnswer {
  bool yes = true;
  std::string_view reason = {};
};

}  // namespace ingot::core
