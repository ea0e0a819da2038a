// SPDX-License-Identifier: Apache-2.0
// Integers that each call of a program chooses.
#pragma once

#include <set>
#include <string>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// Makes the integers among the inputs of a whole program its arguments. Their symbols may have any value:
// torch notes the range of a size for each of them, which calls are not checked for.
void pass_numbers(Graph& graph);

// The symbols that integers of calls bind: those that no tensor has as a size.
std::set<std::string, std::less<>> passed_symbols(const Graph& graph);

}  // namespace ingot::core::aten
