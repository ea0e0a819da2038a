// SPDX-License-Identifier: Apache-2.0
#include "support/parallel.h"

#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::core {
namespace {

TEST(ForEachWatched, CallsEachIndexOnceAndWatchesOnTheCallersThread) {
  for (const size_t count : {0, 1, 2, 100}) {
    std::vector<std::atomic<int>> calls(count);
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> watched{0}, elsewhere{0}, own{0};
    for_each_watched(
        count,
        [&] {
          ++watched;
          if (std::this_thread::get_id() != caller) ++elsewhere;
        },
        [&](size_t index, const auto& go_on) {
          EXPECT_TRUE(go_on());
          ++calls[index];
          if (std::this_thread::get_id() == caller) ++own;
        });
    for (const auto& each : calls) EXPECT_EQ(each, 1);
    EXPECT_EQ(elsewhere, 0);
    EXPECT_TRUE(watched > 0 || own == 0);  // other threads may be quicker and take all
    EXPECT_TRUE(own == 1 || count != 1);
  }
}

TEST(ForEachWatched, EndsWhereTheWatchThrows) {
  std::atomic<size_t> ended{0};
  const auto stop = [] { throw std::runtime_error("enough"); };
  // Each index would go on for ever.
  const auto endless = [&](size_t, const auto& go_on) {
    while (go_on()) std::this_thread::yield();
    ++ended;
  };
  EXPECT_THROW(for_each_watched(8, stop, endless), std::runtime_error);
  EXPECT_LE(ended, 8u);
}

TEST(ForEachWatched, ThrowsWhatTheFunctionThrowsWhileOthersWait) {
  const auto work = [](size_t index, const auto& go_on) {
    if (index == 3) throw std::length_error("three");
    while (index < 3 && go_on()) std::this_thread::yield();
  };
  EXPECT_THROW(for_each_watched(
                   4, [] {}, [&](size_t index, const auto& go_on) { work(3 - index, go_on); }),
               std::length_error);
}

}  // namespace
}  // namespace ingot::core
