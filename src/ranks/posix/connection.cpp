// SPDX-License-Identifier: Apache-2.0
#include "ranks/posix/connection.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/core.h>

#include "support/error.h"
#include "support/fork.h"

namespace ingot::core {
namespace {

struct FreeFound {
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};
using Found = std::unique_ptr<addrinfo, FreeFound>;

Found find_addresses(const std::string& host, const std::string& port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0)
    throw UserError("INGOT-U353", fmt::format("the address '{}:{}' of a group of ranks is not known: {}",
                                              host, port, ::gai_strerror(error)));
  return Found(found);
}

RankSocket open_socket(const addrinfo& address) {
  const int type = address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC;
  return RankSocket(::socket(address.ai_family, type, address.ai_protocol));
}

std::string host_of(int file, decltype(&::getpeername) get) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  char host[60] = {};
  if (get(file, reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof(host), nullptr, 0,
                    NI_NUMERICHOST) != 0)
    return {};
  return host;
}

sockaddr_storage own_address(int file) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(file, reinterpret_cast<sockaddr*>(&address), &size);
  return address;
}

// TCP connects a socket to itself if the port that it asks for, where nobody listens, is the one it was
// given.
bool is_own(int file) {
  const sockaddr_storage own = own_address(file);
  sockaddr_storage other{};
  socklen_t size = sizeof(other);
  ::getpeername(file, reinterpret_cast<sockaddr*>(&other), &size);
  return std::memcmp(&own, &other, sizeof(own)) == 0;
}

bool is_temporary(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

template <typename Step>
Progress repeat(int file, short events, const TimeLimit& limit, Step&& step) {
  for (;;) {
    const Progress progress = step();
    if (progress != Progress::kBlocked || limit.is_over()) return progress;
    std::vector<pollfd> files{{.fd = file, .events = events, .revents = 0}};
    wait_for_events(files, limit);
  }
}

// Waits for a socket that connects; whether it has.
bool finish_connecting(int file, const TimeLimit& limit) {
  std::vector<pollfd> files{{.fd = file, .events = POLLOUT, .revents = 0}};
  do {
    wait_for_events(files, limit);  // signals end it early
  } while (files[0].revents == 0 && !limit.is_over());
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(file, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 && files[0].revents != 0;
}

}  // namespace

std::chrono::milliseconds TimeLimit::left() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}
void TimeLimit::shorten(std::chrono::milliseconds duration) {
  end_ = std::min(end_, Clock::now() + duration);
}

RankSocket::RankSocket(int file) : file_(file), forks_(fork_count()) {
  if (file >= 0) close_in_children(file);
}
RankSocket& RankSocket::operator=(RankSocket&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(forks_, other.forks_);
  return *this;
}
RankSocket::~RankSocket() {
  if (file_ < 0 || forks_ != fork_count()) return;
  keep_in_children(file_);
  ::close(file_);
}

Connection::Connection(RankSocket socket) : socket_(std::move(socket)) {
  const int yes = 1;
  ::setsockopt(file(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

Progress Connection::send(Transfer<const std::byte>& transfer) {
  while (transfer.left > 0) {
    const ssize_t count = ::send(file(), transfer.next, transfer.left, MSG_NOSIGNAL);
    if (count < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kBroken;
    transfer.next += count;
    transfer.left -= static_cast<size_t>(count);
  }
  return Progress::kDone;
}

Progress Connection::receive(Transfer<std::byte>& transfer) {
  while (transfer.left > 0) {
    const ssize_t count = ::recv(file(), transfer.next, transfer.left, 0);
    if (count == 0) return Progress::kBroken;
    if (count < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kBroken;
    transfer.next += count;
    transfer.left -= static_cast<size_t>(count);
  }
  return Progress::kDone;
}

Progress Connection::peek(std::byte* target, size_t bytes) const {
  const ssize_t count = ::recv(file(), target, bytes, MSG_PEEK);
  if (count == 0) return Progress::kBroken;
  if (count < 0) return is_temporary(errno) ? Progress::kBlocked : Progress::kBroken;
  return static_cast<size_t>(count) == bytes ? Progress::kDone : Progress::kBlocked;
}

Progress Connection::send_all(const void* data, size_t bytes, const TimeLimit& limit) {
  Transfer<const std::byte> transfer{static_cast<const std::byte*>(data), bytes};
  return repeat(file(), POLLOUT, limit, [&] { return send(transfer); });
}
Progress Connection::receive_all(void* data, size_t bytes, const TimeLimit& limit) {
  Transfer<std::byte> transfer{static_cast<std::byte*>(data), bytes};
  return repeat(file(), POLLIN, limit, [&] { return receive(transfer); });
}
void Connection::end_sending() { ::shutdown(file(), SHUT_WR); }

std::string Connection::local_host() const { return host_of(file(), ::getsockname); }
std::string Connection::remote_host() const { return host_of(file(), ::getpeername); }

std::optional<Listener> Listener::open(const std::string& host, const std::string& port) {
  const Found found = find_addresses(host, port, AI_PASSIVE);
  RankSocket socket = open_socket(*found);
  const int yes = 1;
  ::setsockopt(socket.file(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  const bool is_bound = ::bind(socket.file(), found->ai_addr, found->ai_addrlen) == 0;
  if (is_bound && ::listen(socket.file(), SOMAXCONN) == 0) return Listener(std::move(socket));
  if (errno == EADDRINUSE) return std::nullopt;
  throw UserError("INGOT-U353",
                  fmt::format("rank 0 cannot listen at '{}:{}': {}", host, port, std::strerror(errno)),
                  "the address of a group is one of rank 0's machine");
}

std::optional<Connection> Listener::accept() {
  RankSocket accepted(::accept4(file(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!accepted.is_open()) return std::nullopt;
  return Connection(std::move(accepted));
}

uint32_t Listener::port() const {
  const sockaddr_storage address = own_address(file());
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

std::optional<Connection> connect_to(const std::string& host, const std::string& port,
                                     const TimeLimit& limit) {
  const Found found = find_addresses(host, port, 0);
  for (const addrinfo* address = found.get(); address != nullptr; address = address->ai_next) {
    RankSocket socket = open_socket(*address);
    if (!socket.is_open()) continue;
    if (::connect(socket.file(), address->ai_addr, address->ai_addrlen) != 0) {
      const bool has_begun = errno == EINPROGRESS || errno == EINTR;
      if (!has_begun || !finish_connecting(socket.file(), limit)) continue;
    }
    if (!is_own(socket.file())) return Connection(std::move(socket));
  }
  return std::nullopt;
}

void wait_for_events(std::vector<pollfd>& files, const TimeLimit& limit) {
  const auto milliseconds = std::min<int64_t>(limit.left().count(), 60'000);
  for (pollfd& file : files) file.revents = 0;
  ::poll(files.data(), files.size(), static_cast<int>(milliseconds));
}

}  // namespace ingot::core
