// SPDX-License-Identifier: Apache-2.0
// A pool that splits a range statically over threads: the split depends on counts only, never on timing.
// In a forked child, which has none of the threads, the first call that needs them starts as many.
#pragma once

#include <atomic>
#include <cstdint>
#include <type_traits>

namespace ingot::core {

// A borrowed callable: no allocation, no ownership.
struct RangeTask {
  void (*call)(void* context, int64_t begin, int64_t end, int worker);
  void* context;
};

class ThreadPool {
 public:
  // `threads` counts the caller: a pool of 1 starts no thread. Workers spin for `spin_microseconds` after a
  // task, then sleep (0: sleep at once, so that other pools of the process are not starved).
  explicit ThreadPool(int threads, int spin_microseconds);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls task over [0, count) in at most `threads()` contiguous parts whose bounds are multiples of `grain`;
  // returns when all are done. Runs on the caller alone if one part suffices, if called from a worker, or if
  // another caller holds the pool. `task` must not throw. Worker numbers are in [0, threads()); parts that
  // run at the same time have different ones. A part that its worker has not begun when the caller is through
  // with its own is run by the caller, under the worker's number. DeviceError INGOT-D003 if a forked child
  // cannot start its threads.
  void parallel_for(int64_t count, int64_t grain, RangeTask task);

  template <typename Function>
  void parallel_for(int64_t count, int64_t grain, Function&& function) {
    parallel_for(count, grain,
                 RangeTask{[](void* context, int64_t begin, int64_t end, int worker) {
                             (*static_cast<std::remove_reference_t<Function>*>(context))(begin, end, worker);
                           },
                           &function});
  }

 private:
  struct State;
  State& state_of_this_process();

  const int threads_;
  const int spin_microseconds_;
  std::atomic<State*> state_;
};

// min(affinity mask, cgroup CPU quota rounded up), at least 1.
int available_threads();

}  // namespace ingot::core
