// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// Whether a size of a tensor depends on the symbol, in the graph or in one that a node holds.
bool decides_sizes(const Graph& graph, const std::string& symbol);

}  // namespace ingot::core::aten
