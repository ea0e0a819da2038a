// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Replaces all uses of `from` by `to`. A newly created value also takes over the name, so that the text
// stays readable.
void replace_all_uses(Graph& graph, Value* from, Value* to);

}  // namespace ingot::core
