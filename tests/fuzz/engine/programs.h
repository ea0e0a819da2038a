// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/engine_data.h"

namespace ingot::core::fuzz {

// Small engines of all that a program may hold: nested programs, routines, aliases, sizes that steps bind.
std::vector<EngineData> engines();

}  // namespace ingot::core::fuzz
