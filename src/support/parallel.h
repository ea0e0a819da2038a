// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

#include "support/thread_pool.h"

namespace ingot::core {

// Calls function(index) for each index below `count`, on threads of its own that end with this call: for
// large work of unequal parts, such as hashing files, outside of runs. `function` must not throw.
template <typename Function>
void for_each_parallel(size_t count, Function&& function) {
  const size_t threads = std::min<size_t>(static_cast<size_t>(available_threads()), count);
  if (threads == 0) return;
  ThreadPool pool(static_cast<int>(threads), 0);
  std::atomic<size_t> next{0};
  pool.parallel_for(pool.threads(), 1, [&](int64_t, int64_t, int) {
    for (size_t index; (index = next.fetch_add(1)) < count;) function(index);
  });
}

}  // namespace ingot::core
