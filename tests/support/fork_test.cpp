// SPDX-License-Identifier: Apache-2.0
// Children that are forked in any state of locks and pools.
#include "support/fork.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/thread_pool.h"
#include "tests/support/child.h"

namespace ingot::core {
namespace {

using testing::in_child;

constexpr int kThreads = 3;
constexpr int kForks = 40;

// Whether a loop of `kThreads` parts runs on as many threads, and covers its range.
bool runs_on_all_threads(ThreadPool& pool) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::atomic<int> begun = 0;
  std::atomic<int64_t> sum = 0;
  pool.parallel_for(kThreads, 1, [&](int64_t begin, int64_t end, int) {
    ++begun;
    while (begun < kThreads) std::this_thread::yield();  // else the caller may take parts back
    for (int64_t i = begin; i < end; ++i) sum += i + 1;
    const std::scoped_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  return threads.size() == kThreads && sum == 6;
}

// Calls `work` again and again on a thread of its own, until the end of the scope.
class Busy {
 public:
  template <typename Work>
  explicit Busy(Work work)
      : thread_([this, work] {
          while (!stop_) {
            work();
            ++rounds_;
          }
        }) {
    while (rounds_ == 0) std::this_thread::yield();
  }
  ~Busy() {
    stop_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> stop_ = false;
  std::atomic<int> rounds_ = 0;
  std::thread thread_;
};

TEST(ForkCount, CountsForks) {
  const uint32_t here = fork_count();
  EXPECT_EQ(in_child([&] {
              return fork_count() == here + 1 && in_child([&] { return fork_count() == here + 2; }).empty();
            }),
            "");
  EXPECT_EQ(fork_count(), here);
}

TEST(ClosedInChildren, OnlyWhileRegistered) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const auto is_open = [](int file) { return ::fcntl(file, F_GETFD) >= 0; };
  close_in_children(pipe[0]);
  close_in_children(pipe[1]);
  keep_in_children(pipe[1]);
  EXPECT_EQ(in_child([&] {
              if (is_open(pipe[0]) || !is_open(pipe[1])) return false;
              return ::dup2(pipe[1], pipe[0]) >= 0 && in_child([&] { return is_open(pipe[0]); }).empty();
            }),
            "");
  keep_in_children(pipe[0]);
  EXPECT_EQ(in_child([&] { return is_open(pipe[0]); }), "");
  for (const int file : pipe) ::close(file);
}

TEST(ForkSafeMutex, ExcludesOtherThreads) {
  ForkSafeMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 5000; ++k) {
        const std::scoped_lock lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 20000);
}

TEST(ForkSafeMutex, IsFreeWhereItsHolderIsMissing) {
  ForkSafeMutex mutex;
  std::atomic<bool> held = false, done = false;
  std::thread holder([&] {
    const std::scoped_lock lock(mutex);
    held = true;
    while (!done) std::this_thread::yield();
  });
  while (!held) std::this_thread::yield();
  std::thread waiter([&] { const std::scoped_lock lock(mutex); });  // in the child neither is there
  const auto take_twice = [&] {
    for (int i = 0; i < 2; ++i) const std::scoped_lock lock(mutex);
    return true;
  };
  EXPECT_EQ(in_child([&] { return take_twice() && in_child(take_twice).empty(); }), "");
  done = true;
  holder.join();
  waiter.join();
}

TEST(ForkSafeMutex, StaysHeldByTheThreadThatForked) {
  ForkSafeMutex mutex;
  mutex.lock();
  EXPECT_EQ(in_child([&] {
              std::atomic<bool> released = false, right = false;
              std::thread other([&] {
                const std::scoped_lock lock(mutex);
                right = released.load();
              });
              std::this_thread::sleep_for(std::chrono::milliseconds(20));
              released = true;
              mutex.unlock();
              other.join();
              return right.load();
            }),
            "");
  mutex.unlock();
}

TEST(ForkSafeMutex, ManyForksUnderContention) {
  ForkSafeMutex mutex;
  const auto take = [&] { const std::scoped_lock lock(mutex); };
  const Busy first(take), second(take);
  for (int i = 0; i < kForks; ++i) {
    ASSERT_EQ(in_child([&] {
                for (int k = 0; k < 10; ++k) take();
                return true;
              }),
              "")
        << i;
  }
}

TEST(ForkedPool, HasItsThreadsInTheChild) {
  for (const int spin : {0, 50}) {
    ThreadPool pool(kThreads, spin);
    ASSERT_TRUE(runs_on_all_threads(pool));
    EXPECT_EQ(in_child([&] { return runs_on_all_threads(pool) && runs_on_all_threads(pool); }), "");
    EXPECT_EQ(in_child([&] { return pool.threads() == kThreads; }), "");
    EXPECT_TRUE(runs_on_all_threads(pool));
  }
}

TEST(ForkedPool, HasThemInChildrenOfChildren) {
  ThreadPool pool(kThreads, 0);
  const auto run = [&] { return runs_on_all_threads(pool); };
  EXPECT_EQ(
      in_child([&] { return in_child([&] { return in_child(run).empty() && run(); }).empty() && run(); }),
      "");
}

TEST(ForkedPool, EndsInTheChild) {
  auto pool = std::make_unique<ThreadPool>(kThreads, 0);
  EXPECT_EQ(in_child([&] {
              pool.reset();
              return true;
            }),
            "");
  EXPECT_EQ(in_child([&] {
              const bool right = runs_on_all_threads(*pool);
              pool.reset();
              return right;
            }),
            "");
}

TEST(ForkedPool, ForksWhileOthersRun) {
  if (!testing::kForksBesideThreads) GTEST_SKIP();
  ThreadPool pool(kThreads, 20);
  const auto run_some = [&] { pool.parallel_for(1000, 1, [](int64_t, int64_t, int) {}); };
  const Busy first(run_some), second(run_some);
  for (int i = 0; i < kForks; ++i) {
    ASSERT_EQ(in_child([&] { return runs_on_all_threads(pool); }), "") << i;
  }
}

TEST(ForkedPool, ForksByManyThreads) {
  if (!testing::kForksBesideThreads) GTEST_SKIP();
  ThreadPool pool(kThreads, 0);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) {
        pool.parallel_for(1000, 1, [](int64_t, int64_t, int) {});
        wrong += in_child([&] { return runs_on_all_threads(pool); }).empty() ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ForkedPool, ManyCallersInTheChild) {
  ThreadPool pool(kThreads, 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(in_child([&] {
                std::atomic<int64_t> sum = 0;
                std::vector<std::thread> callers;
                for (int k = 0; k < 4; ++k) {
                  callers.emplace_back([&] {
                    pool.parallel_for(100, 1, [&](int64_t begin, int64_t end, int) { sum += end - begin; });
                  });
                }
                for (std::thread& caller : callers) caller.join();
                return sum == 400 && runs_on_all_threads(pool);
              }),
              "");
  }
}

}  // namespace
}  // namespace ingot::core
