// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph.h"

namespace ingot::core {

// A result that is an operand with some elements replaced.
struct InPlaceUpdate {
  Value* operand;
  bool is_read_too;  // the node reads the operand besides: it cannot be overwritten meanwhile
};

// What an in-place operator, or one that a fused node holds, does to an operand; empty for other results.
std::optional<InPlaceUpdate> in_place_update(const Value& result);

}  // namespace ingot::core
