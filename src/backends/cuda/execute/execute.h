// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/executor.h"

namespace ingot::core::cuda {

// Runs cubins on the first GPU of this machine. The driver is opened when an engine needs it.
const Executor& executor();

}  // namespace ingot::core::cuda
