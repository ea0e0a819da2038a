// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "passes/pass.h"

namespace ingot::core {

// The nodes whose values depend on weights and constants alone.
std::set<const Node*> invariant_nodes(const Graph& graph);

// Moves every node whose value depends on weights and constants alone to init. Nodes with small inputs and
// large results (fills, broadcasts) stay where they are used.
Split hoist(Graph graph);

}  // namespace ingot::core
