// SPDX-License-Identifier: Apache-2.0
// How ranks meet, and every way to fail at it.
#include <gmock/gmock.h>

#include <chrono>

#include "ranks/posix/wire.h"
#include "support/hash.h"
#include "tests/ranks/ranks.h"

namespace ingot::core {
namespace {

using namespace testing;
using std::chrono::milliseconds;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

TEST(Meeting, OfOneRankNeedsNobody) {
  const auto group = join_group(options("127.0.0.1:1", 0, 1));
  EXPECT_EQ(exchange(*group, 8), std::vector<uint8_t>{0});
}

TEST(Meeting, NamesRanksThatDoNotCome) {
  const std::string address = free_address();
  const auto start = Clock::now();
  const auto errors = run_ranks(4, [&](int rank) {
    if (rank == 0 || rank == 2) join_group(options(address, rank, 4, 700));
  });
  EXPECT_LT(Clock::now() - start, kLong);
  for (const size_t rank : {0UL, 2UL})
    EXPECT_EQ(errors[rank],
              fmt::format("INGOT-D350: group 'tp' of 4 ranks at {}: ranks 1 and 3 did not come within 700 ms",
                          address));
}

TEST(Meeting, NamesRankZeroThatDoesNotCome) {
  const std::string address = free_address();
  const auto errors = run_ranks(2, [&](int rank) {
    if (rank == 1) join_group(options(address, rank, 2, 300));
  });
  EXPECT_THAT(errors[1], HasSubstr("INGOT-D350: group 'tp' of 2 ranks"));
  EXPECT_THAT(errors[1], HasSubstr("rank 0 did not come within 300 ms"));
}

TEST(Meeting, RefusesContradictions) {
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

TEST(Meeting, RefusesTwoOfTheSameRank) {
  const std::string address = free_address();
  const auto errors =
      run_ranks(3, [&](int rank) { join_group(options(address, rank == 2 ? 1 : rank, 3, 2000)); });
  EXPECT_THAT(errors, Each(HasSubstr("two ranks call themselves 1")));
}

TEST(Meeting, ChecksItsOptions) {
  const auto refusal = [](const GroupOptions& given) {
    return run_ranks(1, [&](int) { join_group(given); })[0];
  };
  EXPECT_THAT(refusal(options("127.0.0.1:1", 0, 0)), HasSubstr("INGOT-U353"));
  EXPECT_THAT(refusal(options("127.0.0.1:1", 2, 2)), HasSubstr("has no rank 2"));
  EXPECT_THAT(refusal(options("127.0.0.1:1", -1, 2)), HasSubstr("has no rank -1"));
  EXPECT_THAT(refusal(options("127.0.0.1:1", 0, 2, 0)), HasSubstr("deadline"));
  for (const char* address : {"", "here", ":1", "127.0.0.1:"})
    EXPECT_THAT(refusal(options(address, 0, 2)), HasSubstr("is not the address of a group")) << address;
  for (const char* address : {"127.0.0.1:65536", "127.0.0.1:-1", "[::1]:http"})
    EXPECT_THAT(refusal(options(address, 0, 2)), HasSubstr("is not a port")) << address;
  EXPECT_THAT(refusal(options("192.0.2.1:1", 0, 2, 300)), HasSubstr("rank 0 cannot listen"));
}

TEST(Meeting, IsNotDisturbedByStrangers) {
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

TEST(Meeting, IsNotKeptWaitingByHalfAHello) {
  const std::string address = free_address();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int stranger = ::socket(AF_INET, SOCK_STREAM, 0);
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank == 0) return join_group(options(address, 0, 2, kNever)), void();
    if (rank == 1) {
      std::this_thread::sleep_for(milliseconds(300));
      const auto start = Clock::now();
      join_group(options(address, 1, 2, kNever));
      EXPECT_LT(Clock::now() - start, kLong);
      return;
    }
    while (::connect(stranger, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0)
      std::this_thread::sleep_for(milliseconds(10));
    ASSERT_EQ(::send(stranger, "R", 1, 0), 1);
  });
  ::close(stranger);
  EXPECT_THAT(errors, Each(""));
}

TEST(Meeting, MeetsWhereRankZeroListensAlready) {
  const auto listener = listen_for_group("127.0.0.1:0");
  EXPECT_THAT(listener->address(), ::testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
  GroupOptions first = options("", 0, 2, kNever);
  first.listener = listener;
  const auto errors = run_ranks(2, [&](int rank) {
    exchange(*join_group(rank == 0 ? first : options(listener->address(), 1, 2, kNever)), 10);
  });
  EXPECT_THAT(errors, Each(""));
  const auto refusal = [](auto&& call) { return run_ranks(1, [&](int) { call(); })[0]; };
  EXPECT_THAT(refusal([&] { listen_for_group(listener->address()); }), HasSubstr("the port is taken"));
  first.rank = 1;
  EXPECT_EQ(refusal([&] { join_group(first); }), "INGOT-U353: rank 1 has a listener, which is rank 0's");
}

// As far as its hello.
int report_as(int rank, int size, const std::string& address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.find(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_EQ(::connect(file, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  const Hello hello{.rank = rank, .size = size, .deadline_ms = kNever, .group = short_hash("tp")};
  EXPECT_EQ(::send(file, &hello, sizeof(hello), 0), static_cast<ssize_t>(sizeof(hello)));
  return file;
}

// What rank 0 says of its failure.
std::string failure_from(int file) {
  MessageHeader header;
  EXPECT_EQ(::recv(file, &header, sizeof(header), MSG_WAITALL), static_cast<ssize_t>(sizeof(header)));
  EXPECT_EQ(header.kind, MessageKind::kFailure);
  std::string text(std::min(header.bytes, kMostText), ' ');
  EXPECT_EQ(::recv(file, text.data(), text.size(), MSG_WAITALL), static_cast<ssize_t>(text.size()));
  return text;
}

// Also to those that came later than the one that ended.
TEST(Meeting, NamesARankThatEndsWhileTheRanksMeet) {
  GroupOptions first = options("", 0, 5, 60'000);
  first.listener = listen_for_group("127.0.0.1:0");
  const std::string address = first.listener->address();
  const int before = report_as(1, 5, address);
  ::close(report_as(2, 5, address));
  const int after = report_as(3, 5, address);
  const auto errors = run_ranks(1, [&](int) { join_group(first); });
  EXPECT_THAT(errors[0], HasSubstr("INGOT-D350"));
  EXPECT_THAT(errors[0], HasSubstr("rank 2 ended while the ranks met"));
  for (const int file : {before, after}) {
    EXPECT_THAT(failure_from(file), HasSubstr("rank 2 ended while the ranks met"));
    ::close(file);
  }
}

TEST(Meeting, NamesARankThatHangsWhileTheRanksMeet) {
  GroupOptions first = options("", 0, 3, 1500);
  first.listener = listen_for_group("127.0.0.1:0");
  const std::string address = first.listener->address();
  int hanging = -1;
  const auto errors = run_ranks(3, [&](int rank) {
    if (rank == 2) return void(hanging = report_as(2, 3, address));
    exchange(*join_group(rank == 0 ? first : options(address, 1, 3, 1500)), 10);
  });
  ::close(hanging);
  EXPECT_THAT(errors[0], HasSubstr("2 did not"));
  EXPECT_THAT(errors[1], HasSubstr("rank 2 did not"));
}

TEST(Meeting, CanBeJoinedAgainAtTheSameAddress) {
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

}  // namespace
}  // namespace ingot::core
