// SPDX-License-Identifier: Apache-2.0
// Many short steps, each split over threads, in a single dispatch to the pool: for recurrences, whose steps
// take less time than waking a thread.
#pragma once

#include <cstdint>
#include <functional>

namespace ingot::core {

class ThreadPool;

// Calls task(step, part) once for each step in [0, steps) and part in [0, parts); a step begins when all
// parts of the previous one are done. Part p belongs to thread p, so that its data stays in that core's
// cache; a waiting thread takes over parts that have not begun. `task` must not throw.
void run_steps(ThreadPool* pool, int64_t steps, int parts, const std::function<void(int64_t, int)>& task);

}  // namespace ingot::core
