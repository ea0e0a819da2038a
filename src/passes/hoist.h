// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "ir/graph.h"

namespace ingot::core {

// A graph split by what decides its values. `init` has no inputs and no symbols: it runs once a checkpoint.
// Its output k is the `weight` node of `main` with init_output == k. Weights that main uses as they are stay
// `weight` nodes of main.
struct Split {
  Graph init;
  Graph main;
};

// The nodes whose values follow from weights and constants alone.
std::set<const Node*> invariant_nodes(const Graph& graph);

// Moves every node whose value follows from weights and constants alone to init. Nodes that make much out of
// nothing (fills, broadcasts) stay where they are used.
Split hoist(Graph graph);

}  // namespace ingot::core
