// SPDX-License-Identifier: Apache-2.0
// Graphs and their arguments, which may be graphs.
#pragma once

#include "importers/pt2/value_scope.h"

namespace ingot::core::pt2 {

// The schema's union `Argument`. Dictionaries become lists of [key, value] lists.
// UnsupportedError: INGOT-N506 custom objects, INGOT-N507 an unknown kind.
aten::Argument read_argument(Json value, ValueScope& scope);

// The names that an `Argument` which defines values (a graph's input, a node's output) declares, in order;
// nullopt for None, which is an undefined tensor.
struct Definition {
  std::vector<std::optional<std::string>> names;
  bool is_list = false;
};
Definition read_definition(Json value, const ReadContext& context);

// "torch.ops.aten.add.Tensor" without "torch.ops."; other targets unchanged.
std::string read_target(Json value);

// A graph inside a node: its inputs are user inputs, its outputs user outputs.
aten::Graph read_graph(Json graph_json, ReadContext& context);

// Appends the nodes to the scope's graph, with complete arguments. Errors name the node and its line.
void read_nodes(Json graph_json, ValueScope& scope);

}  // namespace ingot::core::pt2
