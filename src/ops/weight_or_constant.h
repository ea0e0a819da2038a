// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/ops.h"

namespace ingot::core::ops {

// Whether the node reads a tensor of the engine: a weight or a constant. Null, as of an input: no.
inline bool is_weight_or_constant(const Node* node) {
  return node != nullptr && (node->op == &weight || node->op == &constant);
}

}  // namespace ingot::core::ops
