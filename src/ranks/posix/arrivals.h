// SPDX-License-Identifier: Apache-2.0
// What reaches a listening rank while the ranks meet. Connections that do not say who they are, or say half
// of it, do not keep others waiting.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "ranks/posix/connection.h"
#include "ranks/posix/wire.h"

namespace ingot::core {

constexpr std::chrono::milliseconds kRetry{20};  // between attempts

class Arrivals {
 public:
  explicit Arrivals(Listener& listener) : listener_(listener) {}

  using Take = std::function<void(const Hello& hello, Connection connection)>;
  // Waits until something happens, at most until `limit`; `take` gets those who have said who they are.
  // Returns the positions in `watched`, open connections, of those that sent something or ended.
  std::vector<size_t> wait(const TimeLimit& limit, const std::vector<Connection*>& watched, const Take& take);
  // Calls `tell` with each connection that was not taken, those that nobody has looked at yet included.
  void each_waiting(const std::function<void(Connection&)>& tell);

 private:
  // A connection that was accepted, and what it has sent of its hello.
  struct Arrival {
    Connection connection;
    Hello hello;
    size_t received = 0;

    Progress receive();
  };

  void read(const std::vector<pollfd>& files, const Take& take);
  bool accept();  // whether there was any

  Listener& listener_;
  std::vector<Arrival> unknown_;
};

}  // namespace ingot::core
