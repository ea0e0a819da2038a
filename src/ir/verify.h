// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"
#include "ir/storage_rules.h"

namespace ingot::core {

// Throws InternalError naming `stage`, the node and the first broken rule: use before definition, use lists,
// operand counts and dtypes, stored types that differ from inferred ones, unknown symbols in types and
// attributes, outputs and updates that are not values of the graph, and the rules of ir/storage_rules.h.
void verify(const Graph& graph, std::string_view stage, OutputLayouts outputs = OutputLayouts::kRowMajor);

}  // namespace ingot::core
