// SPDX-License-Identifier: Apache-2.0
// Groups: exchanging, and every way to fail.
#include <gmock/gmock.h>

#include <chrono>

#include <sys/wait.h>

#include "ranks/signs_of_life.h"
#include "tests/ranks/ranks.h"

namespace ingot::core {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(Group, ExchangesBlocksOfAnySize) {
  for (const int size : {2, 4}) {
    const Groups groups = connected(size);
    const auto errors = run_ranks(size, [&](int rank) {
      Communicator& own = *groups[static_cast<size_t>(rank)];
      EXPECT_EQ(own.rank(), rank);
      EXPECT_EQ(own.size(), size);
      for (const size_t bytes : {1UL, 0UL, 5000UL, 3UL << 20}) {
        const std::vector<uint8_t> got = exchange(own, bytes);
        for (int r = 0; r < size; ++r)
          EXPECT_EQ(got[static_cast<size_t>(r)], r == rank || bytes == 0 ? 0 : r + 1) << bytes;
      }
      EXPECT_EQ(own.exchanges(), 4);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

// A rank may be done, and gone, while others still wait for each other.
TEST(Group, MayEndAfterItsLastExchange) {
  Groups groups = connected(3);
  const auto errors = run_ranks(3, [&](int rank) {
    auto& own = groups[static_cast<size_t>(rank)];
    if (rank == 2) std::this_thread::sleep_for(milliseconds(200));
    exchange(*own, 100);
    if (rank == 1) own = nullptr;
  });
  EXPECT_THAT(errors, Each(""));
}

// For longer than the deadline, and more than once.
TEST(Group, WaitsForARankThatIsAtWork) {
  const Groups groups = connected(3, milliseconds(3000));
  const auto errors = run_ranks(3, [&](int rank) {
    Communicator& own = *groups[static_cast<size_t>(rank)];
    for (int i = 0; i < 2; ++i) {
      if (rank == 1) {
        const SignsOfLife signs(groups[1]);
        std::this_thread::sleep_for(milliseconds(i == 0 ? 4000 : 20));
      }
      exchange(own, 100);
    }
    EXPECT_TRUE(own.is_whole());
  });
  EXPECT_THAT(errors, Each(""));
  groups[1]->say_alive();
  EXPECT_TRUE(groups[0]->is_whole());
}

// Work does not excuse a rank that ends, nor that of one rank another one.
TEST(Group, NamesRanksBesideOneThatIsAtWork) {
  Groups groups = connected(3, milliseconds(kNever));
  auto errors = run_ranks(3, [&](int rank) {
    if (rank != 1) return exchange(*groups[static_cast<size_t>(rank)], 10), void();
    {
      const SignsOfLife signs(groups[1]);
    }
    groups[1] = nullptr;
  });
  for (const size_t rank : {0UL, 2UL}) EXPECT_EQ(errors[rank], "INGOT-D350: group 'tp': rank 1 ended");
  groups = connected(3, milliseconds(3000));
  errors = run_ranks(3, [&](int rank) {
    if (rank == 0) return exchange(*groups[0], 10), void();
    if (rank == 2) return;  // it hangs
    const SignsOfLife signs(groups[1]);
    std::this_thread::sleep_for(milliseconds(4000));
  });
  EXPECT_EQ(errors[0], "INGOT-D350: group 'tp': rank 2 did not answer within 3000 ms");
}

// Also if no other rank is left that could tell it.
TEST(Group, NamesARankThatHangs) {
  for (const int size : {2, 4}) {
    const Groups groups = connected(size, milliseconds(400));
    const auto start = Clock::now();
    const auto exchange_all = [&](int rank) { exchange(*groups[static_cast<size_t>(rank)], 100); };
    const auto errors = run_ranks(size, [&](int rank) {
      if (rank != 1) exchange_all(rank);
    });
    EXPECT_LT(Clock::now() - start, kLong);
    // It wakes up: the others are gone, and said why.
    const auto later = run_ranks(size, exchange_all);
    EXPECT_THAT(later[1], HasSubstr("INGOT-D350: group 'tp': rank 1 did not answer"));
    for (size_t rank = 0; rank < groups.size(); ++rank) {
      if (rank == 1) continue;
      EXPECT_EQ(errors[rank], "INGOT-D350: group 'tp': rank 1 did not answer within 400 ms");
      EXPECT_THAT(later[rank], HasSubstr("INGOT-D352: group 'tp' is unusable since an earlier failure"));
      EXPECT_THAT(later[rank], HasSubstr("rank 1 did not answer"));
      EXPECT_FALSE(groups[rank]->is_usable());
    }
  }
}

// Large blocks fill the buffers of the system: the rank that hangs blocks those that send to it.
TEST(Group, NamesARankThatDoesNotReceive) {
  const Groups groups = connected(3, milliseconds(4000));  // the others copy and compare, on a busy machine
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank != 1) exchange(*groups[static_cast<size_t>(rank)], 16UL << 20);
  });
  for (const size_t rank : {0UL, 2UL}) EXPECT_THAT(errors[rank], HasSubstr("rank 1 did not answer"));
}

TEST(Group, NamesARankThatEnds) {
  Groups groups = connected(4, milliseconds(kNever));
  const auto start = Clock::now();
  const auto errors = run_ranks(4, [&](int rank) {
    auto& own = groups[static_cast<size_t>(rank)];
    if (rank != 3) return exchange(*own, 100), void();
    std::this_thread::sleep_for(milliseconds(100));
    own = nullptr;
  });
  EXPECT_LT(Clock::now() - start, kLong);  // not at the deadline
  for (const size_t rank : {0UL, 1UL, 2UL}) EXPECT_EQ(errors[rank], "INGOT-D350: group 'tp': rank 3 ended");
}

TEST(Group, NamesARankThatRunsSomethingElse) {
  const auto run = [](auto&& call) {
    const Groups groups = connected(3);
    return run_ranks(3, [&](int rank) { call(*groups[static_cast<size_t>(rank)], rank); });
  };
  const auto other_engine =
      run([](Communicator& group, int rank) { exchange(group, 8, {rank == 1 ? 9UL : 1UL, 2}); });
  EXPECT_THAT(other_engine, Each(HasSubstr("INGOT-D351")));
  EXPECT_THAT(other_engine, Each(HasSubstr("another engine")));
  const auto other_step =
      run([](Communicator& group, int rank) { exchange(group, 8, {1, rank == 1 ? 9UL : 2UL}); });
  EXPECT_THAT(other_step, Each(HasSubstr("another collective")));
  const auto other_size = run([](Communicator& group, int rank) { exchange(group, rank == 1 ? 9UL : 8UL); });
  EXPECT_THAT(other_size, Each(HasSubstr("tensors of other sizes")));
  const auto other_tensor =
      run([](Communicator& group, int rank) { exchange(group, 8, {1, 2, rank == 1 ? 16UL : 8UL}); });
  EXPECT_THAT(other_tensor, Each(HasSubstr("tensors of other sizes")));
}

TEST(Group, EndsWhenARankLeaves) {
  const Groups groups = connected(3);
  const auto errors = run_ranks(3, [&](int rank) {
    exchange(*groups[static_cast<size_t>(rank)], 100);
    if (rank == 1) return groups[1]->leave("an index is out of range");
    exchange(*groups[static_cast<size_t>(rank)], 100);
  });
  for (const size_t rank : {0UL, 2UL})
    EXPECT_EQ(errors[rank], "INGOT-D350: group 'tp': a run of rank 1 failed: an index is out of range");
}

// A rank that is idle sees that there is no group any more, and its next exchange says why.
TEST(Group, IsNotWholeWithoutEachRank) {
  Groups groups = connected(3);
  for (const auto& group : groups) EXPECT_TRUE(group->is_whole());
  EXPECT_TRUE(run_ranks(3, [&](int rank) { exchange(*groups[static_cast<size_t>(rank)], 10); }) ==
              std::vector<std::string>(3));
  for (const auto& group : groups) EXPECT_TRUE(group->is_whole());
  groups[0]->leave("an index is out of range");
  for (const auto& group : groups) EXPECT_FALSE(group->is_whole());
  const auto later = run_ranks(3, [&](int rank) { exchange(*groups[static_cast<size_t>(rank)], 10); });
  EXPECT_THAT(later, Each(HasSubstr("INGOT-D352")));
  EXPECT_THAT(later, Each(HasSubstr("an index is out of range")));
  groups = connected(2);
  groups[1] = nullptr;
  EXPECT_FALSE(groups[0]->is_whole());
  EXPECT_FALSE(groups[0]->is_usable());
}

// The one that differs cannot know it: it hears of it, even if it expects no block from who noticed.
TEST(Group, TellsTheRankThatDiffers) {
  const Groups groups = connected(2);
  const auto errors = run_ranks(2, [&](int rank) {
    std::vector<std::byte> block(rank == 0 ? 64 : 8);
    std::vector<SentBlock> sent(2);
    std::vector<ReceivedBlock> received(2);
    if (rank == 1) sent[0] = {block.data(), 8};
    if (rank == 0) received[1] = {block.data(), 64};
    groups[static_cast<size_t>(rank)]->exchange(sent, received, kTag);
    exchange(*groups[static_cast<size_t>(rank)], 8);
  });
  EXPECT_THAT(errors, Each(HasSubstr("INGOT-D351: group 'tp': rank 1 sends 8 bytes to rank 0")));
}

// A child has copies of the sockets, which must not keep the parent's ranks waiting when the parent ends, and
// must not speak in its place.
TEST(Group, DoesNotSurviveAFork) {
  Groups groups = connected(2, milliseconds(kNever));
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool is_refused = false;
    try {
      exchange(*groups[0], 10);
    } catch (const DeviceError& error) {
      is_refused = error.details().code == "INGOT-D352";
    }
    [[maybe_unused]] const auto written = ::write(ready[1], "x", 1);
    char byte = 0;
    ::close(done[1]);
    ::alarm(60);
    [[maybe_unused]] const auto end = ::read(done[0], &byte, 1);
    ::_exit(is_refused ? 0 : 1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto start = Clock::now();
  groups[0] = nullptr;
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) exchange(*groups[1], 10);
  });
  EXPECT_EQ(errors[1], "INGOT-D350: group 'tp': rank 0 ended");
  EXPECT_LT(Clock::now() - start, kLong);
  ::close(done[1]);  // the child was there until now
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// The thread that was in a run, with the group's lock, is not in the child.
TEST(Group, RefusesAChildThatWasForkedInARun) {
  const Groups groups = connected(2);
  std::thread run([&] {
    groups[0]->begin_run();
    exchange(*groups[0], 10);
  });
  while (groups[0]->exchanges() == 0) std::this_thread::sleep_for(milliseconds(1));
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(5);
    bool is_refused = false;
    try {
      if (groups[0]->begin_run()) exchange(*groups[0], 10);
    } catch (const DeviceError& error) {
      is_refused = error.details().code == "INGOT-D352";
    }
    groups[0]->leave("nothing is sent");
    ::_exit(is_refused && !groups[0]->is_whole() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  exchange(*groups[1], 10);
  run.join();
}

}  // namespace
}  // namespace ingot::core
