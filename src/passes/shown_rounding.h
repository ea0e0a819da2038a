// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Whether the program rounds here and a reader shows it. Values inside a kernel stay wide: a kernel must end
// with such a node, or the rounding would be lost.
bool must_round(const Node& node);

}  // namespace ingot::core
