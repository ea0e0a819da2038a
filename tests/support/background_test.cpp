// SPDX-License-Identifier: Apache-2.0
#include "support/background.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/support/child.h"

namespace ingot::core {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000};

TEST(BackgroundWork, IsDoneInOrderWhileTheCallerGoesOn) {
  BackgroundWork work(1000);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::vector<int> done;
  ASSERT_TRUE(work.add(1, [opened] { opened.wait(); }));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(work.add(1, [&done, i] { done.push_back(i); }));
  EXPECT_EQ(work.waiting(), 11u);
  EXPECT_FALSE(work.wait(milliseconds(1)));
  gate.set_value();
  EXPECT_TRUE(work.wait(kLong));
  EXPECT_EQ(work.waiting(), 0u);
  EXPECT_EQ(done, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(BackgroundWork, NeedsNoWait) { EXPECT_TRUE(BackgroundWork(10).wait(milliseconds(0))); }

TEST(BackgroundWork, HoldsAtMostSoManyBytes) {
  BackgroundWork work(100);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  ASSERT_TRUE(work.add(1000, [opened] { opened.wait(); })) << "one piece is always taken";
  EXPECT_FALSE(work.add(1, [] {}));
  gate.set_value();
  EXPECT_TRUE(work.wait(kLong));
  EXPECT_TRUE(work.add(60, [] {}));
  EXPECT_TRUE(work.wait(kLong));
}

TEST(BackgroundWork, GoesOnAfterAFailure) {
  BackgroundWork work(10);
  bool is_done = false;
  ASSERT_TRUE(work.add(1, [] { throw std::runtime_error("no"); }));
  ASSERT_TRUE(work.add(1, [&] { is_done = true; }));
  EXPECT_TRUE(work.wait(kLong));
  EXPECT_TRUE(is_done);
}

TEST(BackgroundWork, LetsGoOfWhatItHeldBeforeItIsDone) {
  BackgroundWork work(10);
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> watch = held;
  ASSERT_TRUE(work.add(1, [own = std::move(held)] {}));
  EXPECT_TRUE(work.wait(kLong));
  EXPECT_TRUE(watch.expired());
}

TEST(BackgroundWork, DropsWhatHasNotBegunAtItsEnd) {
  std::atomic<int> done = 0;
  std::promise<void> begun;
  {
    BackgroundWork work(10);
    ASSERT_TRUE(work.add(1, [&] {
      begun.set_value();
      std::this_thread::sleep_for(milliseconds(50));
      ++done;
    }));
    ASSERT_TRUE(work.add(1, [&] { done += 100; }));
    begun.get_future().wait();
  }
  EXPECT_EQ(done, 1);
}

TEST(BackgroundWork, TakesTheWorkOfManyThreads) {
  BackgroundWork work(1 << 20);
  std::atomic<int> done = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) {
        EXPECT_TRUE(work.add(1, [&] { ++done; }));
        EXPECT_TRUE(k % 50 != 0 || work.wait(kLong));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(work.wait(kLong));
  EXPECT_EQ(done, 800);
}

TEST(BackgroundWork, IsNotDoneAgainByForkedChildren) {
  if (!testing::kForksBesideThreads) GTEST_SKIP();
  BackgroundWork work(100);
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  std::atomic<int> done = 0;
  ASSERT_TRUE(work.add(1, [opened] { opened.wait(); }));
  ASSERT_TRUE(work.add(1, [&] { ++done; }));
  EXPECT_EQ(testing::in_child([&] {
              const bool is_idle = work.waiting() == 0 && work.wait(milliseconds(0));
              return is_idle && work.add(1, [&] { done += 10; }) && work.wait(kLong) && done == 10;
            }),
            "");
  gate.set_value();
  EXPECT_TRUE(work.wait(kLong));
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace ingot::core
