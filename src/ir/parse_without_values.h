// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/text.h"

namespace ingot::core {

// As parse_graph, but takes constants by their digest too, as in cache keys: the literals of such nodes have
// no data. The graph can be looked at, not compiled.
Graph parse_without_values(std::string_view text, const FindOp& find_op);

}  // namespace ingot::core
