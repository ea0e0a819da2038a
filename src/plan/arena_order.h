// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/plan_input.h"

namespace ingot::core {

// Places the arena buffers of a program at the typical sizes, fills `above` so that the plan holds for all
// sizes (docs/design/001-symbolic-memory-plans.md), and renumbers the buffers: others first, then the arena
// from its bottom, then aliases.
void order_arena(Program& program, const SymbolValues& typical, PlanReport& report);

}  // namespace ingot::core
