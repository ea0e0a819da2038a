// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/run_plan.h"
#include "support/thread_pool.h"

namespace ingot::core {

// Runs step `index`, which is a routine, on the host; `working` is memory for it. Errors name the node.
void run_routine(const EngineData& data, const Executable& executable, Frame& frame, size_t index,
                 ThreadPool& pool, GrowingBlock& working);

}  // namespace ingot::core
