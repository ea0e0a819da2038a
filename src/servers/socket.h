// SPDX-License-Identifier: Apache-2.0
// A TCP connection whose every call ends by a deadline. Errors are ServerFailures.
#pragma once

#include <netdb.h>

#include <cstdint>
#include <span>
#include <string>

#include "servers/deadline.h"
#include "support/bytes.h"

namespace ingot::core {

class Socket {
 public:
  Socket(const std::string& host, uint16_t port, const Deadline& deadline);
  ~Socket();
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void send(Bytes bytes, const Deadline& deadline);
  size_t receive(std::span<char> target, const Deadline& deadline);  // at least 1 byte

 private:
  void wait_for(short events, const Deadline& deadline) const;
  bool try_connect(const addrinfo& address, const Deadline& deadline);
  void close();

  int file_ = -1;
};

}  // namespace ingot::core
