// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.h"
#include "types/plain_value.h"

namespace ingot::core {

// The attributes of a node as its routine receives them, in the order of the record: bools, integers, floats
// and strings. Dims are left out, being sizes of its results.
NamedValues routine_attributes(const Node& node);

}  // namespace ingot::core
