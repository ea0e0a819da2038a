// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ingot::core {

// Where a node stands in its graph.
struct Surroundings {
  std::vector<Value*> values;          // its distinct operands, then its results
  std::map<std::string, Dim> symbols;  // the symbols of the node alone -> those of the graph
};

// A node of a final graph apart from its neighbours: what its backend lowers. Equal nodes of one model, or of
// several, have equal texts, whatever their values and symbols are called.
struct LoneNode {
  Graph graph;  // one input, or weight or state without a name, per distinct operand; the node; its symbols
  const Node* node = nullptr;
  std::map<const Value*, size_t> positions;  // of operands and results of `node`, in Surroundings::values
  Surroundings around;

  std::string text() const;  // canonical: of all of `graph`
};

LoneNode isolate(const Node& node, const SymbolTable& symbols);

}  // namespace ingot::core
