// SPDX-License-Identifier: Apache-2.0
#include "support/stepped_loop.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/thread_pool.h"

namespace ingot::core {
namespace {

// Each part adds up all parts of the previous step: wrong if a step begins too early, or twice.
std::vector<int64_t> sums_after(ThreadPool* pool, int64_t steps, int parts) {
  std::vector<int64_t> before(static_cast<size_t>(parts), 1), after = before;
  run_steps(pool, steps, parts, [&](int64_t step, int part) {
    const auto& from = step % 2 == 0 ? before : after;
    int64_t sum = part;
    for (const int64_t value : from) sum += value % 1000;
    (step % 2 == 0 ? after : before)[static_cast<size_t>(part)] = sum;
  });
  return steps % 2 == 0 ? before : after;
}

TEST(SteppedLoop, AStepSeesAllOfTheStepBefore) {
  ThreadPool pool(4, 50);
  for (const int parts : {1, 2, 3, 4, 9}) {
    for (const int64_t steps : {0, 1, 2, 501})
      EXPECT_EQ(sums_after(&pool, steps, parts), sums_after(nullptr, steps, parts)) << parts << " " << steps;
  }
}

TEST(SteppedLoop, RunsOnWhoeverHasTime) {
  ThreadPool pool(2, 0);
  std::atomic<int> runs = 0;
  pool.parallel_for(2, 1, [&](int64_t, int64_t, int) {  // the pool is held: each caller runs all on its own
    run_steps(&pool, 10, 2, [&](int64_t, int) { ++runs; });
  });
  EXPECT_EQ(runs, 40);
}

TEST(SteppedLoop, ManyCallersAtOnce) {
  ThreadPool pool(3, 20);
  const std::vector<int64_t> expected = sums_after(nullptr, 200, 3);
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int j = 0; j < 20; ++j) EXPECT_EQ(sums_after(&pool, 200, 3), expected);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace ingot::core
