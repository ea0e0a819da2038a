// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "engine/engine_data.h"
#include "ingot/ingot.h"
#include "routines/communicator.h"

namespace ingot::core::api {

// The groups for a context of this engine: those given, those of the process, and that of the environment,
// which is joined when a context first needs it.
std::vector<BoundGroups::Bound> find_groups(const EngineData& data,
                                            std::span<const ingot_group_binding> given);

// Of which parts of sharded weights an engine takes the values: `given`, "1" or "tp:1,dp:0", or that of the
// rank that the engine is for, of the shared groups, or of INGOT_RANK. UserError INGOT-U357 for another text.
ShardRanks find_ranks(const EngineData& data, const char* given);

}  // namespace ingot::core::api
