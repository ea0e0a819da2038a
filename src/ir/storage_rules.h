// SPDX-License-Identifier: Apache-2.0
// How values may be stored: fusion, lowering, the planner and the runtime rely on these rules. Each function
// returns the first broken rule, "" if there is none.
//  - A layout is a bijection onto its storage.
//  - Result 0 of an in-place operator has the type of operand 0, layout included: they may share a buffer.
//  - Routines choose their own strides: their operands and results are row-major.
//  - State, inputs, outputs and literals are read or written by others: they are row-major, and the new value
//    of a state has the state's type.
//  - A fused region only computes: it has no sources, literals, updates or further graphs. In-place writes
//  are of its inputs, and
//    their results its outputs alone.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ingot::core {

std::string storage_problem(const TensorType& type);
std::string storage_problem(const Node& node);

// Outputs of the init program are read by the main program only, and may have any layout.
enum class OutputLayouts { kRowMajor, kAny };
// Checks the graph's inputs, outputs and updates.
std::string port_problem(const Graph& graph, OutputLayouts layouts);

// Checks the graph inside a fused node.
std::string region_problem(const Graph& region);

}  // namespace ingot::core
