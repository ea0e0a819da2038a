// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Throws InternalError naming `stage` and the first broken rule: use before definition, use lists, operand
// counts and dtypes, inferred types that disagree with stored ones, unknown symbols, outputs and updates that
// are no values.
void verify(const Graph& graph, std::string_view stage);

}  // namespace ingot::core
