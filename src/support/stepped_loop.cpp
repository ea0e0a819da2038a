// SPDX-License-Identifier: Apache-2.0
#include "support/stepped_loop.h"

#include <atomic>
#include <thread>
#include <vector>

#include "support/thread_pool.h"
#include "support/wait_word.h"

namespace ingot::core {
namespace {

// How many steps of one part were begun, and how many are done. Padded to its own cache lines.
struct alignas(128) Progress {
  std::atomic<int64_t> begun = 0;
  std::atomic<int64_t> done = 0;
};

// Another thread is running the part now: a short wait, unless the system descheduled that thread.
void await(const std::atomic<int64_t>& done, int64_t count) {
  constexpr int kPauses = 2048;
  while (true) {
    for (int i = 0; i < kPauses; ++i) {
      if (done.load(std::memory_order_acquire) >= count) return;
      spin_pause();
    }
    std::this_thread::yield();
  }
}

}  // namespace

void run_steps(ThreadPool* pool, int64_t steps, int parts, const std::function<void(int64_t, int)>& task) {
  std::vector<Progress> progress(static_cast<size_t>(parts));
  const auto take_part = [&](int64_t step, int part) {
    Progress& own = progress[static_cast<size_t>(part)];
    int64_t expected = step;
    if (!own.begun.compare_exchange_strong(expected, step + 1, std::memory_order_acq_rel)) return;
    task(step, part);
    own.done.store(step + 1, std::memory_order_release);
  };
  // A thread that arrives late finds the first steps done and catches up at once.
  auto take_steps = [&](int64_t first, int64_t, int) {
    for (int64_t step = 0; step < steps; ++step) {
      for (int i = 0; i < parts; ++i) take_part(step, static_cast<int>((first + i) % parts));
      for (const Progress& part : progress) await(part.done, step + 1);
    }
  };
  if (pool == nullptr || parts == 1)
    take_steps(0, parts, 0);
  else
    pool->parallel_for(parts, 1, take_steps);
}

}  // namespace ingot::core
