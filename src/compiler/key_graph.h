// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_data.h"
#include "ir/graph.h"

namespace ingot::core {

// The graph that an engine was built from, before all passes, as its key has it: without the names of nodes,
// source lines, values of weights and of large constants. Inputs have their names, nodes and weights numbers.
// UserError INGOT-U205 if the key has no graph that this version of Ingot can read.
Graph graph_of_key(const EngineData& engine);

}  // namespace ingot::core
