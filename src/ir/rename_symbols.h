// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ingot::core {

// The symbols of a graph's inputs, attributes and results, nested graphs included: first those that are a dim
// by themselves, in order of appearance, then those of compound dims and of upper bounds in `symbols`. The
// names of the former do not matter to the order.
std::vector<std::string> symbols_in_order(const Graph& graph, const SymbolTable& symbols);

// The same graph over other symbols: `names` maps each of its symbols to its new one. The graph's own table
// is not changed.
void rename_symbols(Graph& graph, const std::map<std::string, Dim>& names);

}  // namespace ingot::core
