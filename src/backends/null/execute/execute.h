// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/executor.h"

namespace ingot::core::null {

// Runs no code: the results of this backend's steps are left unchanged. Tests planning without a device.
const Executor& executor();

}  // namespace ingot::core::null
