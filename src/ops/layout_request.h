// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "types/layout.h"

namespace ingot::core {

// Layouts that a backend requires for a node's operands and results; nullopt (or a missing entry): any.
struct LayoutRequest {
  std::vector<std::optional<Layout>> operands;
  std::vector<std::optional<Layout>> results;
};

}  // namespace ingot::core
