// SPDX-License-Identifier: Apache-2.0
// What ranks say of the work of their devices while the host exchanges nothing.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/ranks/ranks.h"

namespace ingot::core {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

// Looks as a device's thread does, until the group ends or the time is over. Returns why it ended.
std::string watched(Communicator& group, DeviceWork work, milliseconds duration) {
  work.since = Clock::now();
  while (Clock::now() - work.since < duration && group.watch(work))
    std::this_thread::sleep_for(milliseconds(5));
  if (group.is_usable()) return "";
  return fmt::format("{}: {}", group.failure_code(), group.failure());
}

TEST(Watch, WaitsAsLongAsAllRanksAreAtTheSameWork) {
  const Groups groups = connected(3, milliseconds(1200));
  run_ranks(3, [&](int rank) {
    Communicator& own = *groups[static_cast<size_t>(rank)];
    EXPECT_EQ(watched(own, {.number = 4, .history = 9}, milliseconds(1700)), "");
  });
}

TEST(Watch, NamesARankOfWhichNothingIsHeard) {
  const Groups groups = connected(3, milliseconds(1200));
  run_ranks(3, [&](int rank) {
    if (rank == 2) return;
    EXPECT_THAT(
        watched(*groups[static_cast<size_t>(rank)], {.number = 4, .history = 9}, milliseconds(kNever)),
        HasSubstr("INGOT-D350: group 'tp': rank 2 did not answer within 1200 ms"));
  });
}

TEST(Watch, NamesARankThatEnds) {
  Groups groups = connected(2, milliseconds(kNever));
  groups[1] = nullptr;
  EXPECT_THAT(watched(*groups[0], {.number = 1, .history = 1}, milliseconds(kNever)),
              HasSubstr("INGOT-D350: group 'tp': rank 1 ended"));
}

TEST(Watch, NamesARankAtOtherWork) {
  for (const DeviceWork& other :
       {DeviceWork{.number = 4, .history = 8}, DeviceWork{.number = 5, .history = 9}}) {
    const Groups groups = connected(2, milliseconds(1200));
    run_ranks(2, [&](int rank) {
      const DeviceWork own = rank == 0 ? DeviceWork{.number = 4, .history = 9} : other;
      EXPECT_THAT(watched(*groups[static_cast<size_t>(rank)], own, milliseconds(kNever)),
                  HasSubstr("INGOT-D351: group 'tp': rank"));
    });
  }
}

TEST(Watch, NamesARankThatWaitsInAnExchange) {
  const Groups groups = connected(2, milliseconds(1200));
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) return exchange(*groups[1], 10), void();
    EXPECT_THAT(watched(*groups[0], {.number = 4, .history = 9}, milliseconds(kNever)),
                HasSubstr("INGOT-D351: group 'tp': rank 1 runs another collective than rank 0"));
  });
  EXPECT_THAT(errors[1], HasSubstr("INGOT-D351"));
}

// A count of it is an exchange of the run.
TEST(Watch, CountsWorkAsExchanges) {
  const Groups groups = connected(2, milliseconds(1200));
  EXPECT_EQ(groups[0]->device_work(), 0);
  groups[0]->count_device_work();
  EXPECT_EQ(groups[0]->device_work(), 1);
}

}  // namespace
}  // namespace ingot::core
