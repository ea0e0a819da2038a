// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "support/fork.h"

namespace ingot::core {

// Connections that wait for their next use. Thread-safe. A forked child makes its own: it shares the sockets
// of its parent's with it, so it leaves those alone.
template <typename Connection>
class IdleConnections {
 public:
  IdleConnections() : forks_(fork_count()) {}
  ~IdleConnections() { forget_if_forked(); }
  IdleConnections(const IdleConnections&) = delete;
  IdleConnections& operator=(const IdleConnections&) = delete;

  std::unique_ptr<Connection> take() {
    const std::scoped_lock lock(mutex_);
    forget_if_forked();
    if (idle_.empty()) return nullptr;
    std::unique_ptr<Connection> taken = std::move(idle_.back());
    idle_.pop_back();
    return taken;
  }
  // Only one whose last use went well.
  void put_back(std::unique_ptr<Connection> connection) {
    const std::scoped_lock lock(mutex_);
    idle_.push_back(std::move(connection));
  }

 private:
  void forget_if_forked() {
    if (forks_ == fork_count()) return;
    for (std::unique_ptr<Connection>& each : idle_) static_cast<void>(each.release());
    idle_.clear();
    forks_ = fork_count();
  }

  std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;
  uint32_t forks_;
};

}  // namespace ingot::core
