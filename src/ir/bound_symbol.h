// SPDX-License-Identifier: Apache-2.0
// Symbols whose values nodes determine while the program runs.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "ir/graph.h"

namespace ingot::core {

// The symbol that is known once the node has run, "" if there is none (Trait::kBindsSize).
std::string bound_symbol(const Node& node);

std::set<std::string, std::less<>> symbols_bound_by_nodes(const Graph& graph);

}  // namespace ingot::core
