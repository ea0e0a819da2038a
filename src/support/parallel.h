// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <optional>

#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core {

// Calls function(index) for each index below `count`, on threads of its own that end with this call: for
// large work of unequal parts, such as hashing files, outside of runs. On fewer where the system has no more.
// Throws what `function` threw first, and leaves the other indices out then.
template <typename Function>
void for_each_parallel(size_t count, Function&& function) {
  const size_t threads = std::min<size_t>(static_cast<size_t>(available_threads()), count);
  if (threads == 0) return;
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;
  auto work = [&](int64_t, int64_t, int) {
    try {
      for (size_t index; !failed && (index = next.fetch_add(1)) < count;) function(index);
    } catch (...) {
      if (!failed.exchange(true)) failure = std::current_exception();
    }
  };
  std::optional<ThreadPool> pool;
  try {
    pool.emplace(static_cast<int>(threads), 0);
  } catch (const DeviceError&) {  // the caller does it alone
  }
  if (pool) pool->parallel_for(pool->threads(), 1, work);
  if (!pool) work(0, 1, 0);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace ingot::core
