// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::cpu {

// The CPU compiler: hand-designed schedules for contractions, Loop IR through LLVM for the rest.
const Backend& backend();

}  // namespace ingot::core::cpu
