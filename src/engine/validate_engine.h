// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine_data.h"

namespace ingot::core {

// The rules of both programs (`validate`) and the rules between programs and tables, see engine_data.h: for
// engines from files and for engines just compiled. UserError INGOT-U206.
void validate_engine(const EngineData& engine);

}  // namespace ingot::core
