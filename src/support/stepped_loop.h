// SPDX-License-Identifier: Apache-2.0
// Many short steps, each split over threads, in one entry into the pool: recurrences, whose steps are shorter
// than waking a thread takes.
#pragma once

#include <cstdint>
#include <functional>

namespace ingot::core {

class ThreadPool;

// Calls task(step, part) once for each step in [0, steps) and part in [0, parts); a step begins when all
// parts of the one before are done. Part p belongs to thread p, so that what it reads stays in that core's
// cache; a thread that waits takes the parts that others have not begun. `task` must not throw.
void run_steps(ThreadPool* pool, int64_t steps, int parts, const std::function<void(int64_t, int)>& task);

}  // namespace ingot::core
