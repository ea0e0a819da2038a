// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <thread>

#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core {

// Calls function(index) for each index below `count`, on threads that exist for this call only: for large
// work of unequal parts outside of runs, such as hashing files. Uses fewer threads if the system has no more.
// Rethrows the first exception of `function` and skips the remaining indices.
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
  } catch (const DeviceError&) {  // too few threads: the caller does the work alone
  }
  if (pool) pool->parallel_for(pool->threads(), 1, work);
  if (!pool) work(0, 1, 0);
  if (failure) std::rethrow_exception(failure);
}

// The same, with `watch` called on the caller's thread throughout: between indices of its own, and every 20
// ms while only others are busy; an exception of `watch` ends the call. function(index, go_on) calls go_on()
// within a large index, and returns when that is false.
template <typename Watch, typename Function>
void for_each_watched(size_t count, Watch&& watch, Function&& function) {
  constexpr std::chrono::milliseconds kPause(20);
  const std::thread::id caller = std::this_thread::get_id();
  std::atomic<size_t> taken{0}, left{count};
  std::atomic<bool> failed{false};
  const auto go_on = [&] {
    if (!failed && std::this_thread::get_id() == caller) watch();
    return !failed;
  };
  for_each_parallel(count, [&](size_t index) {
    try {
      ++taken;
      function(index, go_on);
      --left;
      while (go_on() && std::this_thread::get_id() == caller && taken == count && left > 0)
        std::this_thread::sleep_for(kPause);
    } catch (...) {
      failed = true;
      throw;
    }
  });
}

}  // namespace ingot::core
