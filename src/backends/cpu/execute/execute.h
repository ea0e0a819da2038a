// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/executor.h"

namespace ingot::core::cpu {

// Runs flat images of this processor's code, each mapped from the file or copied into executable memory.
const Executor& executor();

}  // namespace ingot::core::cpu
