// SPDX-License-Identifier: Apache-2.0
// Connecting to a listener that is slow to accept.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <csignal>

#include "ranks/posix/connection.h"
#include "tests/ranks/ranks.h"

namespace ingot::core {
namespace {

using std::chrono::milliseconds;

void do_nothing(int) {}

// A full queue: the system takes no further connection, and the one who connects tries again after a second.
TEST(ConnectTo, WaitsThroughSignals) {
  struct sigaction action{};
  action.sa_handler = &do_nothing;
  struct sigaction before{};
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &before), 0);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listener, any, size), 0);
  ASSERT_EQ(::getsockname(listener, any, &size), 0);
  ASSERT_EQ(::listen(listener, 0), 0);
  std::vector<int> files = {listener};
  for (int i = 0; i < 4; ++i) {
    files.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
    ::connect(files.back(), any, size);
  }
  std::atomic<bool> is_done = false;
  std::optional<Connection> connection;
  std::thread caller([&] {
    connection =
        connect_to("127.0.0.1", std::to_string(ntohs(address.sin_port)), TimeLimit(milliseconds(9000)));
    is_done = true;
  });
  for (int i = 0; i < 3 && !is_done; ++i) {
    std::this_thread::sleep_for(milliseconds(50));
    ::pthread_kill(caller.native_handle(), SIGUSR1);
  }
  while (!is_done) {
    std::this_thread::sleep_for(milliseconds(10));
    for (int file = 0; (file = ::accept(listener, nullptr, nullptr)) >= 0;) files.push_back(file);
  }
  caller.join();
  EXPECT_TRUE(connection.has_value());
  for (const int file : files) ::close(file);
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace ingot::core
