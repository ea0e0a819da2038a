// SPDX-License-Identifier: Apache-2.0
// Operands of calls that hold graphs: in the program, around the graph, and inside of it.
#pragma once

#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"

namespace ingot::core::aten {

// Arguments of a higher-order operator by position, its graphs apart from the others.
struct ControlArguments {
  std::vector<const Graph*> graphs;
  std::vector<const Argument*> others;
};
ControlArguments arguments_of(const Node& node);

const ArgumentList& list_of(const ControlArguments& arguments, size_t index);  // empty if it is not a list
std::vector<const Argument*> pointers(const ArgumentList& list);

// A value of the graph around `body`, inside of it: weights and constants are copied, others become operands.
class Operands {
 public:
  Operands(core::Graph& body, std::vector<core::Value*> outer);

  // Reads a weight by itself, so that passes know that it is one. The operand stays: loops may carry it.
  std::vector<core::Value*> with_weights(core::Graph& body, size_t first) const;

 private:
  std::vector<core::Value*> outer_, inner_;
};

}  // namespace ingot::core::aten
