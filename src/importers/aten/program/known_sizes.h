// SPDX-License-Identifier: Apache-2.0
// Sizes that follow from data, but of which the program asserts what they are.
#pragma once

#include <optional>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// The graph with each data-dependent symbol that has one value in its range replaced by that value; nullopt
// if there is none. Torch records such a size either as the symbol or as the number, even in one program, so
// that sizes that are equal would look different. Graphs of control flow are copied with it.
std::optional<Graph> with_known_sizes(const Graph& graph);

}  // namespace ingot::core::aten
