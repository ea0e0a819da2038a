// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph.h"

namespace ingot::core {

// Byte offset of the result inside operand 0 if the node moves no byte: its result's storage is a contiguous
// part of operand 0's storage, in the same order (layouts included). Such nodes need no step.
std::optional<Dim> alias_offset(const Node& node);

}  // namespace ingot::core
