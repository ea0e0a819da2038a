// SPDX-License-Identifier: Apache-2.0
// Nodes whose graphs run zero or more times (Trait::kControlFlow). A graph sees its own inputs alone; it may
// contain weights and constants, but updates nothing. A node with two graphs chooses one, a node with one
// repeats it:
//
//   branch(condition, values...)  graphs: (values...) -> results...
//   loop(condition, carried..., values...)
//     graph: (iteration: i64[], carried..., values...) -> (go on: bool[], carried...)
//     while condition: condition, carried = graph(iteration++, carried, values)
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace ingot::core {

bool is_loop(const Node& node);
size_t carried_count(const Node& loop);

// The operands that the inputs of the node's graphs stand for, null for the number of the iteration. A
// carried value is its operand only in the first iteration.
std::vector<Value*> graph_operands(const Node& node);

std::vector<TensorType> types_of(std::span<Value* const> values);

// What is wrong with operands, graphs and results; "": nothing.
std::string control_flow_problem(const Node& node, std::span<const TensorType> results);

}  // namespace ingot::core
