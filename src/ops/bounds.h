// SPDX-License-Identifier: Apache-2.0
// What operators need of symbolic sizes, beyond what their shape rules see to for all sizes.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "types/size_check.h"

namespace ingot::core::ops {

// Adds the conditions under which all that the node reads and writes lies in its operands, and no result has
// a negative size.
void add_bounds(const Node& node, std::vector<Predicate>& conditions);

}  // namespace ingot::core::ops

namespace ingot::core {

// Adds to `checks` the bounds of all nodes. Of these, and of those given, only what the symbols' ranges leave
// open is kept, each condition once.
void complete_checks(const Graph& graph, std::vector<SizeCheck>& checks);

}  // namespace ingot::core
