// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/pt2/value_scope.h"

namespace ingot::core::pt2 {

// A graph inside a node: its inputs are user inputs, its outputs user outputs.
aten::Graph read_graph(Json graph_json, ReadContext& context);

// Appends the nodes to the scope's graph, with complete arguments. Errors name the node and its line.
void read_nodes(Json graph_json, ValueScope& scope);

}  // namespace ingot::core::pt2
