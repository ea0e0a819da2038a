// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/run_plan.h"
#include "runtime/run_resources.h"

namespace ingot::core {

// Runs step `index`, which is a routine, on the host. Errors name the node.
void run_routine(const RunResources& resources, const Executable& executable, Frame& frame, size_t index);

}  // namespace ingot::core
