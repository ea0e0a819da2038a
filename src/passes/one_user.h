// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Whether a single operand of a node reads the value, and nothing outside of the graph does: its producer may
// then compute something else.
inline bool has_one_user(const Graph& graph, const Value* value) {
  return value->users.size() == 1 && !graph.is_output(value);
}

}  // namespace ingot::core
