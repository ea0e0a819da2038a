// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "engine/engine_data.h"

namespace ingot::core {

// One engine of several levels, of one model compiled for each. They share the model's own weights, in one
// table: init prepares them when the engine is loaded. The level that this machine runs is in use.
std::shared_ptr<EngineData> join_levels(std::vector<std::shared_ptr<EngineData>> levels);

}  // namespace ingot::core
