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
  Graph graph;  // one input per distinct operand, the node, and the symbols it uses
  const Node* node = nullptr;
  Surroundings around;

  std::string text() const;                   // canonical: of all of `graph`
  size_t position(const Value* value) const;  // of an input or result of `graph`, in Surroundings::values
};

LoneNode isolate(const Node& node, const SymbolTable& symbols);

}  // namespace ingot::core
