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

}  // namespace ingot::core::api
