// SPDX-License-Identifier: Apache-2.0
// The definition of a step as one kernel.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "loops/kernel.h"

namespace ingot::core {

// The definition of a step: its nodes' own lowerings as one kernel, with the values of its buffers.
struct Definition {
  loops::Kernel kernel;
  std::vector<const Value*> buffers;              // of the whole graph
  std::map<const Value*, const Value*> replaces;  // results that start as a copy of an operand
  bool is_for_finite = false;                     // valid for finite operands only
};

// For a node, fused or not; nullopt if one of its nodes has no lowering.
std::optional<Definition> define(const Node& node);

bool reduces(const loops::Kernel& kernel);  // has loops inside of its parallel ones
// False if the order of products decides whether one underflows before it meets an infinity, for shifts,
// which are undefined for some integers, and if a node is defined for finite operands only.
bool suits_special_values(const Definition& definition);

// Estimated time of the interpreter for one point of the parallel loops, in nanoseconds.
double point_cost(const loops::Kernel& kernel, const SymbolValues& sizes);

}  // namespace ingot::core
