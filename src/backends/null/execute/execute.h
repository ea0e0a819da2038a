// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/executor.h"

namespace ingot::core::null {

// Runs no code: a step of this backend leaves its results as they are. Checks planning without a device.
const Executor& executor();

}  // namespace ingot::core::null
