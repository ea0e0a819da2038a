// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/engine_data.h"

namespace ingot::core {

// Says which weights are parts of larger tensors. An entry is "PATTERN:AXIS/PARTS" or
// "PATTERN:AXIS/PARTS@GROUP": patterns are names of the model with * and ?, the group is one of the
// program's, by default its only one. Entries for other axes of one weight, or other groups, divide it
// further. UserError INGOT-U356 for entries that name no weight, no axis or no group, or contradict each
// other.
void declare_shards(EngineData& engine, const std::vector<std::string>& entries);

}  // namespace ingot::core
