// SPDX-License-Identifier: Apache-2.0
// Which launches of a graph get other arguments, with a driver that notes what it is asked for.
#include "backends/cuda/execute/moving_graphs.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "backends/cuda/execute/device.h"
#include "support/error.h"

namespace ingot::core::cuda {
namespace {

using Changes = std::vector<std::pair<uint64_t, uint64_t>>;  // nodes, and their new first arguments

struct Asked {
  Changes changes;
  int captures = 0, freed_graphs = 0, freed_executables = 0;
  bool fails = false;
};
Asked asked;

Handle handle(uint64_t number) { return reinterpret_cast<Handle>(number); }

Driver noting_driver() {
  Driver driver{};
  driver.error_name = [](int, const char** name) { return *name = "a failure", 0; };
  driver.set_kernel = [](Handle, Handle node, const KernelNode* kernel) {
    asked.changes.emplace_back(address(node), *static_cast<const uint64_t*>(kernel->arguments[0]));
    return asked.fails ? 1 : 0;
  };
  driver.destroy_executable = [](Handle) { return ++asked.freed_executables, 0; };
  driver.destroy_graph = [](Handle) { return ++asked.freed_graphs, 0; };
  return driver;
}

class MovingGraphsTest : public ::testing::Test {
 protected:
  void SetUp() override { asked = {}; }

  // Two launches with a copy between them.
  static CallList list(uint64_t first, uint64_t second, uint32_t grid = 4, uint64_t copied = 64) {
    CallList calls;
    calls.add_launch(handle(100), grid, 128, 0);
    calls.add_argument(first);
    calls.add_argument(7);
    calls.add_copy(handle(8), handle(16), copied);
    calls.add_launch(handle(101), 1, 64, 0);
    calls.add_argument(second);
    return calls;
  }
  bool find(CallList calls) {
    return graphs_.find(driver_, calls, [&](CallList&) {
      ++asked.captures;
      return ExecutableGraph(driver_, handle(1), handle(2), {}, nodes_);
    }) != nullptr;
  }

  const Driver driver_ = noting_driver();
  std::vector<Handle> nodes_ = {handle(11), handle(12)};
  MovingGraphs graphs_;
};

TEST_F(MovingGraphsTest, TheThirdListIsCapturedAndLaterOnesGiveTheirArguments) {
  EXPECT_FALSE(find(list(1000, 2000)));
  EXPECT_FALSE(find(list(1001, 2000)));
  EXPECT_TRUE(find(list(1002, 2000)));
  EXPECT_EQ(asked.captures, 1);
  EXPECT_TRUE(asked.changes.empty());
  EXPECT_TRUE(find(list(1003, 2000)));
  EXPECT_EQ(asked.changes, (Changes{{11, 1003}}));  // the other one stays
  asked.changes.clear();
  EXPECT_TRUE(find(list(1004, 2001)));
  EXPECT_EQ(asked.changes, (Changes{{11, 1004}, {12, 2001}}));
  asked.changes.clear();
  EXPECT_TRUE(find(list(1003, 2001)));  // beside what the graph does now
  EXPECT_EQ(asked.changes, (Changes{{11, 1003}}));
  EXPECT_EQ(asked.captures, 1);
}

TEST_F(MovingGraphsTest, OtherSizesAndCopiesHaveGraphsOfTheirOwn) {
  for (uint64_t i = 0; i < 4; ++i) {
    for (const CallList& calls : {list(i, i), list(i, i, 5), list(i, i, 4, 65)})
      EXPECT_EQ(find(calls), i >= 2);
  }
  EXPECT_EQ(asked.captures, 3);
  EXPECT_EQ(asked.changes.size(), 6);
}

// Shapes beyond those that are kept start anew; their graphs are freed.
TEST_F(MovingGraphsTest, TheShapeNotUsedForLongestGoes) {
  for (uint32_t grid = 1; grid <= 5; ++grid) {
    for (uint64_t i = 0; i < 3; ++i) EXPECT_EQ(find(list(i, i, grid)), i == 2);
  }
  EXPECT_EQ(asked.freed_executables, 1);
  EXPECT_EQ(asked.freed_graphs, 1);
  EXPECT_FALSE(find(list(9, 9, 1)));
  EXPECT_TRUE(find(list(9, 9, 5)));
  graphs_.clear();
  EXPECT_EQ(asked.freed_executables, 5);
}

// Where the driver does not say which node a launch became.
TEST_F(MovingGraphsTest, WithoutNodesListsAreEnqueued) {
  nodes_[1] = nullptr;
  for (uint64_t i = 0; i < 6; ++i) EXPECT_EQ(find(list(i, i)), i == 2);
  EXPECT_EQ(asked.captures, 1);
  EXPECT_TRUE(asked.changes.empty());
}

// Some launches of the graph may have other arguments already.
TEST_F(MovingGraphsTest, AGraphThatCouldNotBeUpdatedIsNotUsedAgain) {
  for (uint64_t i = 0; i < 3; ++i) find(list(i, i));
  asked.fails = true;
  EXPECT_THROW(find(list(3, 3)), DeviceError);
  EXPECT_EQ(asked.freed_executables, 1);
  asked.fails = false;
  EXPECT_FALSE(find(list(2, 2)));
}

}  // namespace
}  // namespace ingot::core::cuda
