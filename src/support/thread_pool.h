// SPDX-License-Identifier: Apache-2.0
// A pool that splits a range statically over threads: the split depends on counts only, never on timing. A
// forked child has no threads: the first call that needs them starts as many again.
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
  // `threads` counts the caller: a pool of 1 starts no thread. After a task, workers spin for
  // `spin_microseconds` and then sleep (0: sleep at once, so that other pools of the process are not
  // starved).
  explicit ThreadPool(int threads, int spin_microseconds);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  // Calls task over [0, count) in at most `threads()` contiguous parts whose bounds are multiples of `grain`;
  // returns when all are done. Runs on the caller alone if one part suffices, if called from a worker, or if
  // another caller holds the pool. `task` must not throw. Worker numbers are in [0, threads()), and differ
  // between parts that run at the same time. The caller runs parts that their workers have not begun when its
  // own is done, under the worker's number. DeviceError INGOT-D003 if a forked child cannot start its
  // threads.
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
