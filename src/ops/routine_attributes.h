// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/graph.h"

namespace ingot::core {

// The attributes of a node as text for its routine: "axis=1 descending=true", all of them, in the order of
// the record.
std::string routine_attributes(const Node& node);

}  // namespace ingot::core
