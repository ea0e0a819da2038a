// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "engine/engine_data.h"

namespace ingot::core::fuzz {

// Changes one thing of an engine, in its tables or its programs: what a file can say and a right one never
// does.
void mutate(EngineData& engine, std::minstd_rand& random);

}  // namespace ingot::core::fuzz
