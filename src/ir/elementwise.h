// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"

namespace ingot::core {

// Whether each element of the results is computed from elements of operands by itself, or is one of them.
inline bool computes_elements(const Node& node) {
  return node.op->traits.has(Trait::kElementwise) || node.op->traits.has(Trait::kView);
}

}  // namespace ingot::core
