// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace ingot::core {

// A graph in the one form that all isomorphic graphs have: nodes in the order in which outputs need them,
// symbols and weights numbered in the order of their appearance, without names.
struct CanonicalGraph {
  Graph graph;
  std::map<std::string, Dim> symbols;  // of the given graph -> of this one
  std::vector<const Node*> order;      // nodes of the given graph: the k-th is the k-th of this one
  // Weights and states as this graph numbers them: the k-th has this operator and this index in the model.
  std::vector<std::pair<const Op*, int64_t>> sources;
};

// Takes time linear in the number of nodes. Nodes in nested graphs keep their order.
CanonicalGraph canonicalize(const Graph& graph);

}  // namespace ingot::core
