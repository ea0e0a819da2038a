// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/backend.h"

namespace ingot::core::cpu {

// The CPU compiler: hand-written kernel templates for contractions, Loop IR through LLVM for everything else.
const Backend& backend();

}  // namespace ingot::core::cpu
