// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "routines/routine.h"

namespace ingot::core {

std::span<const Routine> all_routines();
const Routine* find_routine(std::string_view name);

}  // namespace ingot::core
