// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Gives all uses of `old` to `value`. A value that was made for this takes the name too, so that texts stay
// readable.
void take_place(Graph& graph, Value* old, Value* value);

}  // namespace ingot::core
