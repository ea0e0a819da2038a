// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "importers/aten/program/aten_graph.h"
#include "importers/files/json.h"

namespace ingot::core::pt2 {

// The line of the user's model that created a node: the innermost frame of the stack trace outside of torch,
// otherwise the innermost one; and the module. Unknown parts stay empty.
aten::Source read_source(Json node_metadata);

// Metadata that `read_source` does not use.
bool is_unused_metadata(std::string_view object, std::string_view key);

}  // namespace ingot::core::pt2
