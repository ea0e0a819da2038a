// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backends/executor.h"

namespace ingot::core::api {

// Every executor that is linked into the runtime library: one per folder of src/backends/ that is there.
std::vector<const Executor*> executors();

}  // namespace ingot::core::api
