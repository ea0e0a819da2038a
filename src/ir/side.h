// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

inline bool is_on_host_side(const Node& node) { return node.side == Side::kHost; }

// Whether one backend runs both, so that a pass may make one node of them, or lay out one for the other.
inline bool are_on_one_side(const Node& a, const Node& b) { return is_on_host_side(a) == is_on_host_side(b); }

}  // namespace ingot::core
