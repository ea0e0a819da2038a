// SPDX-License-Identifier: Apache-2.0
#include "support/thread_pool.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::core {
namespace {

struct Call {
  int64_t begin;
  int64_t end;
  int worker;
  auto operator<=>(const Call&) const = default;
};

std::set<Call> calls_of(ThreadPool& pool, int64_t count, int64_t grain) {
  std::set<Call> calls;
  std::mutex mutex;
  pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int worker) {
    const std::lock_guard lock(mutex);
    calls.insert({begin, end, worker});
  });
  return calls;
}

TEST(ThreadPool, SplitsByCountsAlone) {
  ThreadPool pool(4, 100);
  EXPECT_EQ(calls_of(pool, 100, 10), (std::set<Call>{{0, 30, 0}, {30, 60, 1}, {60, 80, 2}, {80, 100, 3}}));
  EXPECT_EQ(calls_of(pool, 95, 10), (std::set<Call>{{0, 30, 0}, {30, 60, 1}, {60, 80, 2}, {80, 95, 3}}));
  EXPECT_EQ(calls_of(pool, 15, 10), (std::set<Call>{{0, 10, 0}, {10, 15, 1}}));
  EXPECT_EQ(calls_of(pool, 10, 10), (std::set<Call>{{0, 10, 0}}));
  EXPECT_EQ(calls_of(pool, 4, 1), (std::set<Call>{{0, 1, 0}, {1, 2, 1}, {2, 3, 2}, {3, 4, 3}}));
  EXPECT_TRUE(calls_of(pool, 0, 1).empty());
}

TEST(ThreadPool, LargeCountsDoNotOverflow) {
  ThreadPool pool(3, 0);
  const std::set<Call> calls = calls_of(pool, INT64_MAX, 4096);
  ASSERT_EQ(calls.size(), 3U);
  EXPECT_EQ(calls.begin()->begin, 0);
  EXPECT_EQ(calls.rbegin()->end, INT64_MAX);
}

TEST(ThreadPool, OneThreadIsTheCaller) {
  ThreadPool pool(1, 100);
  EXPECT_EQ(pool.threads(), 1);
  const auto caller = std::this_thread::get_id();
  pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end, int worker) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 1000);
    EXPECT_EQ(worker, 0);
  });
}

// Sums 0 .. count - 1 in parts, many times: each index once, and all parts done at return.
void check_sums(ThreadPool& pool, int rounds) {
  std::vector<int64_t> values(997);
  for (int round = 0; round < rounds; ++round) {
    pool.parallel_for(std::ssize(values), 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) values[static_cast<size_t>(i)] += i;
    });
  }
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], rounds * static_cast<int64_t>(i));
}

TEST(ThreadPool, RunsEachIndexOnce) {
  for (const int spin : {0, 1, 50}) {
    for (const int threads : {1, 2, 3, 7}) {
      ThreadPool pool(threads, spin);
      check_sums(pool, 300);
    }
  }
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(3, 0);
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    check_sums(pool, 1);
  }
}

TEST(ThreadPool, CallerSleepsUntilALongPartIsDone) {
  ThreadPool pool(2, 10);
  std::atomic<bool> begun = false;
  std::atomic<bool> done = false;
  pool.parallel_for(2, 1, [&](int64_t begin, int64_t, int) {
    if (begin == 0) {
      while (!begun) std::this_thread::yield();  // so that the worker has the other part
      return;
    }
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    done = true;
  });
  EXPECT_TRUE(done);
}

TEST(ThreadPool, SecondCallerRunsAlone) {
  ThreadPool pool(3, 0);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> held = false;
  std::atomic<int> done_by_second = 0;
  std::thread other([&] {
    // Holds the pool until the other caller is through.
    pool.parallel_for(3, 1, [&](int64_t, int64_t, int) {
      held = true;
      while (done_by_second == 0) std::this_thread::yield();
    });
  });
  while (!held) std::this_thread::yield();
  pool.parallel_for(3, 1, [&](int64_t begin, int64_t end, int) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    done_by_second += static_cast<int>(end - begin);
  });
  other.join();
  EXPECT_EQ(done_by_second, 3);
}

TEST(ThreadPool, NestedCallsRunOnTheirOwnThread) {
  ThreadPool pool(3, 20);
  std::atomic<int> inner_calls = 0;
  pool.parallel_for(3, 1, [&](int64_t, int64_t, int) {
    const auto thread = std::this_thread::get_id();
    pool.parallel_for(30, 1, [&](int64_t begin, int64_t end, int inner) {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      EXPECT_EQ(begin, 0);
      EXPECT_EQ(end, 30);
      EXPECT_GE(inner, 0);
      EXPECT_LT(inner, 3);
      ++inner_calls;
    });
  });
  EXPECT_EQ(inner_calls, 3);
}

TEST(ThreadPool, ConcurrentCallersBothFinish) {
  ThreadPool pool(2, 20);
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) callers.emplace_back([&] { check_sums(pool, 300); });
  for (std::thread& caller : callers) caller.join();
}

TEST(ThreadPool, MakingAndEndingManyPools) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(4, i % 2 == 0 ? 0 : 30);
    if (i % 3 == 0) check_sums(pool, 1);
  }
}

TEST(AvailableThreads, IsAtLeastOneAndAtMostTheMachine) {
  EXPECT_GE(available_threads(), 1);
  EXPECT_LE(available_threads(), static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace ingot::core
