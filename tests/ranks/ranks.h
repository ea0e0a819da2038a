// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of the test.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "ranks/group.h"
#include "support/error.h"

namespace ingot::core::testing {

// At a port that is free now.
inline std::string free_address() {
  const int file = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ::bind(file, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(file, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(file);
  return fmt::format("127.0.0.1:{}", ntohs(address.sin_port));
}

// Calls `work(rank)` in a thread per rank; returns what each threw, as "CODE: message", "" if nothing.
inline std::vector<std::string> run_ranks(int size, const std::function<void(int rank)>& work) {
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const Error& error) {
        errors[static_cast<size_t>(rank)] =
            std::string(error.details().code) + ": " + error.details().message;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return errors;
}

using Groups = std::vector<std::shared_ptr<Communicator>>;

inline Groups connected(int size, std::chrono::milliseconds deadline = std::chrono::seconds(5)) {
  Groups groups(static_cast<size_t>(size));
  const auto listener = listen_for_group("127.0.0.1:0");
  run_ranks(size, [&](int rank) {
    groups[static_cast<size_t>(rank)] = join_group({.name = "tp",
                                                    .address = listener->address(),
                                                    .rank = rank,
                                                    .size = size,
                                                    .deadline = deadline,
                                                    .listener = rank == 0 ? listener : nullptr});
  });
  return groups;
}

constexpr ExchangeTag kTag{1, 2};
constexpr int kNever = 180'000;             // a deadline, in milliseconds
constexpr std::chrono::seconds kLong{120};  // no machine is so slow

// Each rank sends `bytes` bytes with its number to each other; returns what it got.
inline std::vector<uint8_t> exchange(Communicator& group, size_t bytes, const ExchangeTag& tag = kTag) {
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

inline GroupOptions options(const std::string& address, int rank, int size, int deadline_ms = 5000) {
  return {.name = "tp",
          .address = address,
          .rank = rank,
          .size = size,
          .deadline = std::chrono::milliseconds(deadline_ms)};
}

}  // namespace ingot::core::testing
