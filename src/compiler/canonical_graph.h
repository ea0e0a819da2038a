// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "ir/graph.h"

namespace ingot::core {

// A graph in the one form that all isomorphic graphs have: nodes in the order in which outputs need them,
// symbols and weights numbered in the order of their appearance, without names.
struct CanonicalGraph {
  Graph graph;
  std::map<std::string, Dim> symbols;  // of the given graph -> of this one
};

// Takes time linear in the number of nodes. Nodes in nested graphs keep their order.
CanonicalGraph canonicalize(const Graph& graph);

}  // namespace ingot::core
