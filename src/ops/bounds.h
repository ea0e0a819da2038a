// SPDX-License-Identifier: Apache-2.0
// Requirements of operators on symbolic sizes, beyond what their shape rules ensure for all sizes.
#pragma once

#include <vector>

#include "ir/graph.h"
#include "types/size_check.h"

namespace ingot::core::ops {

// Adds the conditions under which everything that the node reads and writes is inside its operands, and no
// result has a negative size.
void add_bounds(const Node& node, std::vector<Predicate>& conditions);

}  // namespace ingot::core::ops

namespace ingot::core {

// Adds the bounds of all nodes to `checks`. Keeps only conditions, new or given, that the symbols' ranges do
// not prove, without duplicates.
void complete_checks(const Graph& graph, std::vector<SizeCheck>& checks);

}  // namespace ingot::core
