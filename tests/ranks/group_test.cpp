// SPDX-License-Identifier: Apache-2.0
// Groups: meeting, exchanging, and every way to fail.
#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <numeric>

#include <sys/wait.h>

#include "tests/ranks/ranks.h"

namespace ingot::core {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr ExchangeTag kTag{1, 2};

// Each rank sends `bytes` bytes with its number to each other; returns what it got.
std::vector<uint8_t> exchange(Communicator& group, size_t bytes, const ExchangeTag& tag = kTag) {
  const auto size = static_cast<size_t>(group.size());
  const std::vector<std::byte> own(bytes, std::byte(group.rank() + 1));
  std::vector<std::byte> all(bytes * size);
  std::vector<SentBlock> sent(size, {own.data(), bytes});
  std::vector<ReceivedBlock> received;
  for (size_t r = 0; r < size; ++r) received.push_back({all.data() + r * bytes, bytes});
  group.exchange(sent, received, tag);
  std::vector<uint8_t> firsts;
  for (size_t r = 0; r < size; ++r) {
    const auto* block = all.data() + r * bytes;
    EXPECT_TRUE(std::all_of(block, block + bytes, [&](std::byte b) { return b == block[0]; }));
    firsts.push_back(bytes == 0 ? 0 : static_cast<uint8_t>(block[0]));
  }
  return firsts;
}

GroupOptions options(const std::string& address, int rank, int size, int deadline_ms = 5000) {
  return {
      .name = "tp", .address = address, .rank = rank, .size = size, .deadline = milliseconds(deadline_ms)};
}

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

TEST(Group, OfOneRankNeedsNobody) {
  const auto group = join_group(options("127.0.0.1:1", 0, 1));
  EXPECT_EQ(exchange(*group, 8), std::vector<uint8_t>{0});
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

TEST(Group, NamesRanksThatDoNotCome) {
  const std::string address = free_address();
  const auto start = Clock::now();
  const auto errors = run_ranks(4, [&](int rank) {
    if (rank == 0 || rank == 2) join_group(options(address, rank, 4, 700));
  });
  EXPECT_LT(Clock::now() - start, milliseconds(2500));
  for (const size_t rank : {0UL, 2UL})
    EXPECT_EQ(errors[rank],
              fmt::format("INGOT-D350: group 'tp' of 4 ranks at {}: ranks 1 and 3 did not come within 700 ms",
                          address));
}

TEST(Group, NamesRankZeroThatDoesNotCome) {
  const std::string address = free_address();
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) join_group(options(address, rank, 2, 300));
  });
  EXPECT_THAT(errors[1], HasSubstr("INGOT-D350: group 'tp' of 2 ranks"));
  EXPECT_THAT(errors[1], HasSubstr("rank 0 did not come within 300 ms"));
}

TEST(Group, RefusesContradictions) {
  const auto meet = [](const GroupOptions& zero, const GroupOptions& other) {
    const std::string address = free_address();
    return run_ranks(2, [&](int rank) {
      GroupOptions own = rank == 0 ? zero : other;
      own.address = address;
      join_group(own);
    });
  };
  EXPECT_THAT(meet(options("", 0, 2), options("", 1, 3)),
              Each(HasSubstr("rank 1 takes it for one of 3 ranks")));
  EXPECT_THAT(meet(options("", 0, 3), options("", 1, 3, 300)), Each(HasSubstr("rank 2 did not come")));
  GroupOptions renamed = options("", 1, 2);
  renamed.name = "dp";
  EXPECT_THAT(meet(options("", 0, 2), renamed), Each(HasSubstr("INGOT-U353")));
  EXPECT_THAT(meet(options("", 0, 2), renamed), Each(HasSubstr("rank 1 has another name for the group")));
}

TEST(Group, RefusesTwoOfTheSameRank) {
  const std::string address = free_address();
  const auto errors =
      run_ranks(3, [&](int rank) { join_group(options(address, rank == 2 ? 1 : rank, 3, 2000)); });
  EXPECT_THAT(errors, Each(HasSubstr("two ranks call themselves 1")));
}

TEST(Group, ChecksItsOptions) {
  const auto refusal = [](const GroupOptions& given) {
    return run_ranks(1, [&](int) { join_group(given); })[0];
  };
  EXPECT_THAT(refusal(options("127.0.0.1:1", 0, 0)), HasSubstr("INGOT-U353"));
  EXPECT_THAT(refusal(options("127.0.0.1:1", 2, 2)), HasSubstr("has no rank 2"));
  EXPECT_THAT(refusal(options("127.0.0.1:1", -1, 2)), HasSubstr("has no rank -1"));
  EXPECT_THAT(refusal(options("127.0.0.1:1", 0, 2, 0)), HasSubstr("deadline"));
  for (const char* address : {"", "here", ":1", "127.0.0.1:"})
    EXPECT_THAT(refusal(options(address, 0, 2)), HasSubstr("is not the address of a group")) << address;
  EXPECT_THAT(refusal(options("192.0.2.1:1", 0, 2, 300)), HasSubstr("rank 0 cannot listen"));
}

// Strangers that connect to the port keep nobody waiting.
TEST(Group, IsNotDisturbedByStrangers) {
  const std::string address = free_address();
  const auto port = static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1)));
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank < 2) {
      if (rank == 1) std::this_thread::sleep_for(milliseconds(300));
      return exchange(*join_group(options(address, rank, 2)), 10), void();
    }
    std::this_thread::sleep_for(milliseconds(100));
    for (const std::string text : {"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\nGET", ""}) {
      const int file = ::socket(AF_INET, SOCK_STREAM, 0);
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      ASSERT_EQ(::connect(file, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
      ASSERT_EQ(::send(file, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
      if (text.empty()) std::this_thread::sleep_for(milliseconds(400));
      ::close(file);
    }
  });
  EXPECT_THAT(errors, Each(""));
}

// Nor do those that begin as a rank does.
TEST(Group, IsNotKeptWaitingByHalfAHello) {
  const std::string address = free_address();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank == 0) return join_group(options(address, 0, 2)), void();
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(300));
      const auto start = Clock::now();
      join_group(options(address, 1, 2));
      EXPECT_LT(Clock::now() - start, milliseconds(1000));
      return;
    }
    while (::connect(stranger, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0)
      std::this_thread::sleep_for(milliseconds(10));
    ASSERT_EQ(::send(stranger, "R", 1, 0), 1);
  });
  ::close(stranger);
  EXPECT_THAT(errors, Each(""));
}

TEST(Group, NamesARankThatHangs) {
  const Groups groups = connected(4, milliseconds(400));
  const auto start = Clock::now();
  const auto errors = run_ranks(4, [&](int rank) {
    if (rank != 2) exchange(*groups[static_cast<size_t>(rank)], 100);
  });
  EXPECT_LT(Clock::now() - start, milliseconds(2000));
  for (const size_t rank : {0UL, 1UL, 3UL})
    EXPECT_EQ(errors[rank], "INGOT-D350: group 'tp': rank 2 did not answer within 400 ms");
  // It wakes up: the others are gone, and said why.
  const auto later = run_ranks(4, [&](int rank) { exchange(*groups[static_cast<size_t>(rank)], 100); });
  EXPECT_THAT(later[2], HasSubstr("INGOT-D350: group 'tp': rank 2 did not answer"));
  for (const size_t rank : {0UL, 1UL, 3UL}) {
    EXPECT_THAT(later[rank], HasSubstr("INGOT-D352: group 'tp' is unusable since an earlier failure"));
    EXPECT_THAT(later[rank], HasSubstr("rank 2 did not answer"));
    EXPECT_FALSE(groups[rank]->is_usable());
  }
}

// Large blocks fill the buffers of the system: the rank that hangs blocks those that send to it.
TEST(Group, NamesARankThatDoesNotReceive) {
  const Groups groups = connected(3, milliseconds(500));
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank != 1) exchange(*groups[static_cast<size_t>(rank)], 32UL << 20);
  });
  for (const size_t rank : {0UL, 2UL}) EXPECT_THAT(errors[rank], HasSubstr("rank 1 did not answer"));
}

TEST(Group, NamesARankThatEnds) {
  Groups groups = connected(4, milliseconds(5000));
  const auto start = Clock::now();
  const auto errors = run_ranks(4, [&](int rank) {
    auto& own = groups[static_cast<size_t>(rank)];
    if (rank != 3) return exchange(*own, 100), void();
    std::this_thread::sleep_for(milliseconds(100));
    own = nullptr;
  });
  EXPECT_LT(Clock::now() - start, milliseconds(2000));  // at once, not at the deadline
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

TEST(Group, CanBeJoinedAgainAtTheSameAddress) {
  const std::string address = free_address();
  Groups groups(2);
  for (int i = 0; i < 3; ++i) {
    const auto errors = run_ranks(2, [&](int rank) {
      auto& own = groups[static_cast<size_t>(rank)];
      own = nullptr;
      own = join_group(options(address, rank, 2));
      exchange(*own, 10);
    });
    EXPECT_THAT(errors, Each(""));
  }
}

// A child has copies of the sockets, which must not keep the parent's ranks waiting when the parent ends, and
// must not speak in its place.
TEST(Group, DoesNotSurviveAFork) {
  Groups groups = connected(2);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
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
    std::this_thread::sleep_for(milliseconds(1500));
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
  EXPECT_LT(Clock::now() - start, milliseconds(1000));
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
