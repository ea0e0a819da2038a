// SPDX-License-Identifier: Apache-2.0
#include "runtime/counters.h"

#include <gtest/gtest.h>

#include <thread>

#include <fmt/core.h>

namespace ingot::core {
namespace {

TEST(Counters, BlocksAreUsedAgain) {
  EngineCounters counters;
  const ContextCounters* first = nullptr;
  {
    const auto one = counters.claim();
    first = one.get();
    one->calls.add();
    one->arena_bytes.set(7);
    EXPECT_NE(counters.claim().get(), first);
    EXPECT_EQ(counters.totals().arena_bytes, 7);
  }
  EXPECT_EQ(counters.totals().contexts, 0);
  EXPECT_EQ(counters.totals().arena_bytes, 0);
  const auto two = counters.claim(), three = counters.claim();
  EXPECT_TRUE(two.get() == first || three.get() == first);
  EXPECT_EQ(counters.totals().contexts, 2);
  EXPECT_EQ(counters.totals().calls, 1);
}

TEST(Counters, ErrorsByCodeAndBeyondTheTable) {
  ErrorCounts errors;
  for (int i = 0; i < 70; ++i) errors.add(fmt::format("INGOT-U{:03}", i));
  errors.add("INGOT-U003");
  errors.add("INGOT-D352");
  for (const char* text : {"", "INGOT-U3", "INGOT-U30x", "OTHER-U300"}) errors.add(text);
  const auto values = errors.values();
  ASSERT_EQ(values.size(), 65);
  EXPECT_EQ(values[3], std::pair(std::string("INGOT-U003"), uint64_t{2}));
  EXPECT_EQ(values[63], std::pair(std::string("INGOT-U063"), uint64_t{1}));
  EXPECT_EQ(values[64], std::pair(std::string("other"), uint64_t{6 + 1 + 4}));
}

TEST(Counters, ErrorsOfManyThreads) {
  ErrorCounts errors;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) errors.add(fmt::format("INGOT-U{:03}", 300 + k % 10));
    });
  for (std::thread& thread : threads) thread.join();
  const auto values = errors.values();
  ASSERT_EQ(values.size(), 10);
  for (const auto& [code, count] : values) EXPECT_EQ(count, 400) << code;
}

}  // namespace
}  // namespace ingot::core
