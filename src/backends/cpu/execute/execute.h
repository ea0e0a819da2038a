// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/executor.h"

namespace ingot::core::cpu {

// Runs kernel binaries for this processor, mapped from the file or copied into executable memory.
const Executor& executor();

}  // namespace ingot::core::cpu
