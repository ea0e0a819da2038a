// SPDX-License-Identifier: Apache-2.0
#include "runtime/capture_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <stdexcept>

namespace ingot::core {
namespace {

struct NumberList {
  int64_t number;
  bool operator==(const NumberList&) const = default;
  Checksum checksum() const { return core::checksum(std::as_bytes(std::span(&number, 1))); }
};

class CaptureCacheTest : public ::testing::Test {
 protected:
  using Cache = CaptureCache<NumberList, int64_t>;
  // What is found for a number: -1 if nothing.
  int64_t find(int64_t number) {
    const int64_t* graph = cache_.find({number}, [&](const NumberList& list) {
      ++captures_;
      return 10 * list.number;
    });
    return graph == nullptr ? -1 : *graph;
  }

  Cache cache_;
  int captures_ = 0;
};

TEST_F(CaptureCacheTest, CapturesAtTheSecondUse) {
  EXPECT_EQ(find(1), -1);
  EXPECT_EQ(find(2), -1);
  EXPECT_EQ(find(1), 10);
  EXPECT_EQ(find(2), 20);
  EXPECT_EQ(find(1), 10);
  EXPECT_EQ(captures_, 2);
}

TEST_F(CaptureCacheTest, ForgetsWhatWasNotUsedForLongest) {
  for (int round = 0; round < 2; ++round) {
    for (int64_t i = 0; i < static_cast<int64_t>(Cache::kMostGraphs); ++i) find(i);
  }
  EXPECT_EQ(find(0), 0);  // makes it the most recent one
  for (int round = 0; round < 2; ++round) find(100);
  const int captures = captures_;
  EXPECT_EQ(find(0), 0);
  EXPECT_EQ(find(2), 20);
  EXPECT_EQ(captures_, captures);
  EXPECT_EQ(find(1), -1);  // was forgotten
  EXPECT_EQ(find(1), 10);
  EXPECT_EQ(captures_, captures + 1);
}

// Whatever their number, lists that are used in turns are captured once at most, and as many as there is room
// for are found.
TEST_F(CaptureCacheTest, TooManyListsInTurnsDoNotReplaceEachOther) {
  constexpr auto kMost = static_cast<int64_t>(Cache::kMostGraphs);
  for (const int64_t lists : {kMost - 1, kMost, kMost + 1, kMost + 8, 2 * kMost, 3 * kMost}) {
    cache_ = Cache();
    captures_ = 0;
    int64_t found = 0;
    for (int round = 0; round < 10; ++round) {
      found = 0;
      for (int64_t i = 0; i < lists; ++i) found += find(i) >= 0 ? 1 : 0;
    }
    const bool are_remembered = lists <= static_cast<int64_t>(Cache::kRemembered);
    EXPECT_EQ(found, are_remembered ? std::min(lists, kMost) : 0) << lists;
    EXPECT_EQ(captures_, found) << lists;
  }
}

// After a change of sizes or addresses the new ones get the graphs.
TEST_F(CaptureCacheTest, NewListsReplaceThoseThatAreNotUsedAnyMore) {
  constexpr auto kMost = static_cast<int64_t>(Cache::kMostGraphs);
  for (int64_t first = 0; first < 4 * kMost; first += kMost) {
    for (int round = 0; round < 3; ++round) {
      for (int64_t i = first; i < first + kMost; ++i) EXPECT_EQ(find(i), round == 0 ? -1 : 10 * i);
    }
  }
  EXPECT_EQ(captures_, 4 * kMost);
}

TEST_F(CaptureCacheTest, ForgetsFirstUses) {
  find(0);
  for (int64_t i = 1; i <= static_cast<int64_t>(Cache::kRemembered); ++i) find(i);
  EXPECT_EQ(find(0), -1);
  EXPECT_EQ(find(0), 0);
}

TEST_F(CaptureCacheTest, FindsByName) {
  const auto named = [&](uint64_t name) {
    const int64_t* graph = cache_.find_named({&name, 1});
    return graph == nullptr ? -1 : *graph;
  };
  for (const uint64_t name : {1, 2}) {
    for (int round = 0; round < 2; ++round) find(static_cast<int64_t>(name));
    cache_.name({&name, 1});
  }
  EXPECT_EQ(named(1), 10);
  EXPECT_EQ(named(2), 20);
  EXPECT_EQ(named(3), -1);
  find(1);
  const uint64_t other = 3;
  cache_.name({&other, 1});
  EXPECT_EQ(named(1), -1);
  EXPECT_EQ(named(3), 10);
  cache_.forget_names();
  EXPECT_EQ(named(2), -1);
  EXPECT_EQ(find(2), 20);
}

// A graph that is used by its name is used, too.
TEST_F(CaptureCacheTest, KeepsWhatIsFoundByName) {
  const uint64_t name = 7;
  for (int round = 0; round < 2; ++round) find(0);
  cache_.name({&name, 1});
  for (int64_t i = 1; i < 3 * static_cast<int64_t>(Cache::kMostGraphs); ++i) {
    for (int round = 0; round < 2; ++round) find(i);
    EXPECT_NE(cache_.find_named({&name, 1}), nullptr);
  }
}

TEST_F(CaptureCacheTest, KeepsNothingOfACaptureThatFails) {
  find(1);
  const auto fail = [](const NumberList&) -> int64_t { throw std::runtime_error("no"); };
  EXPECT_THROW(cache_.find({1}, fail), std::runtime_error);
  EXPECT_EQ(find(1), 10);
}

}  // namespace
}  // namespace ingot::core
