// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of the test.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
  const std::string address = free_address();
  run_ranks(size, [&](int rank) {
    groups[static_cast<size_t>(rank)] =
        join_group({.name = "tp", .address = address, .rank = rank, .size = size, .deadline = deadline});
  });
  return groups;
}

}  // namespace ingot::core::testing
