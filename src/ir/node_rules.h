// SPDX-License-Identifier: Apache-2.0
// What a record requires of its nodes. Each function returns the first broken rule, "" if there is none.
#pragma once

#include <span>
#include <string>

#include "ir/graph.h"

namespace ingot::core {

std::string operand_problem(const Op& op, std::span<Value* const> operands);
std::string attribute_problem(const Op& op, std::span<const AttributeValue> values);
// Fused nodes hold one graph from the operands to the results; control flow holds one or more graphs.
std::string nested_graph_problem(const Node& node, std::span<const TensorType> results);
// A target is an input or the result of a source without literal, is assigned once, and keeps its type.
std::string update_problem(const Graph& graph, size_t index);

}  // namespace ingot::core
