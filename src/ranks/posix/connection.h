// SPDX-License-Identifier: Apache-2.0
// TCP without blocking: calls move what can be moved now, and `wait_for_events` sleeps until there is more.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace ingot::core {

// A point in time by which something has to be done.
class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;
  explicit TimeLimit(std::chrono::milliseconds duration) : end_(Clock::now() + duration) {}
  std::chrono::milliseconds left() const;  // rounded up, at least 0
  bool is_over() const { return Clock::now() >= end_; }
  void shorten(std::chrono::milliseconds duration);
  bool operator<(const TimeLimit& other) const { return end_ < other.end_; }

 private:
  Clock::time_point end_;
};

// A socket that is closed with the object, and in children that this process forks: else the other side would
// not see that this process has ended.
class RankSocket {
 public:
  explicit RankSocket(int file = -1);
  RankSocket(RankSocket&& other) noexcept : file_(std::exchange(other.file_, -1)), forks_(other.forks_) {}
  RankSocket& operator=(RankSocket&& other) noexcept;
  ~RankSocket();
  int file() const { return file_; }
  bool is_open() const { return file_ >= 0; }

 private:
  int file_;
  uint32_t forks_ = 0;  // fork_count() when it was opened
};

enum class Progress { kDone, kBlocked, kBroken };

// Bytes on their way; the memory is the caller's.
template <typename Byte>
struct Transfer {
  Byte* next = nullptr;
  size_t left = 0;
};

class Connection {
 public:
  Connection() = default;
  explicit Connection(RankSocket socket);
  int file() const { return socket_.file(); }
  bool is_open() const { return socket_.is_open(); }

  Progress send(Transfer<const std::byte>& transfer);
  Progress receive(Transfer<std::byte>& transfer);
  // Looks at the next bytes without taking them; kBroken: the other side has closed.
  Progress peek(std::byte* target, size_t bytes) const;
  // The same until done or broken, or the time is over (kBlocked).
  Progress send_all(const void* data, size_t bytes, const TimeLimit& limit);
  Progress receive_all(void* data, size_t bytes, const TimeLimit& limit);
  void end_sending();

  std::string local_host() const;  // numeric
  std::string remote_host() const;

 private:
  RankSocket socket_;
};

class Listener {
 public:
  // nullopt while the port is taken; UserError INGOT-U353 if the address is not of this machine. Port 0: any.
  static std::optional<Listener> open(const std::string& host, const std::string& port);
  std::optional<Connection> accept();
  int file() const { return socket_.file(); }
  uint32_t port() const;

 private:
  explicit Listener(RankSocket socket) : socket_(std::move(socket)) {}
  RankSocket socket_;
};

// nullopt if nobody listens there (yet).
std::optional<Connection> connect_to(const std::string& host, const std::string& port,
                                     const TimeLimit& limit);

// Sleeps until one of the files has events, at most until `limit`.
void wait_for_events(std::vector<pollfd>& files, const TimeLimit& limit);

}  // namespace ingot::core
