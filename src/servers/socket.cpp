// SPDX-License-Identifier: Apache-2.0
#include "servers/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include <fmt/core.h>

namespace ingot::core {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { ::freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

struct Resolved {
  Addresses addresses;
  int error = 0;
};

Resolved look_up(const std::string& host, uint16_t port, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {Addresses(error == 0 ? found : nullptr), error};
}

// The system's resolver has no deadline: a thread asks it, which is left alone when time is up.
Addresses resolve(const std::string& host, uint16_t port, const Deadline& deadline) {
  if (Resolved numeric = look_up(host, port, AI_NUMERICHOST); numeric.error == 0)
    return std::move(numeric.addresses);
  std::promise<Resolved> promise;
  std::future<Resolved> future = promise.get_future();
  std::thread([host, port, to = std::move(promise)]() mutable {
    to.set_value(look_up(host, port, 0));
  }).detach();
  if (future.wait_for(deadline.left()) != std::future_status::ready)
    throw ServerFailure(fmt::format("the address of {} was not found in time", host));
  Resolved resolved = future.get();
  if (resolved.error != 0)
    throw ServerFailure(fmt::format("no address of {} is known: {}", host, ::gai_strerror(resolved.error)));
  return std::move(resolved.addresses);
}

[[noreturn]] void fail(std::string_view what, int error) {
  throw ServerFailure(fmt::format("{}: {}", what, std::strerror(error)));
}

}  // namespace

Socket::Socket(const std::string& host, uint16_t port, const Deadline& deadline) {
  const Addresses addresses = resolve(host, port, deadline);
  int error = 0;
  for (const addrinfo* each = addresses.get(); each != nullptr; each = each->ai_next) {
    if (try_connect(*each, deadline)) return;
    error = errno;
    close();
  }
  fail("no connection", error);
}

Socket::~Socket() { close(); }

void Socket::close() {
  if (file_ >= 0) ::close(file_);
  file_ = -1;
}

bool Socket::try_connect(const addrinfo& address, const Deadline& deadline) {
  file_ =
      ::socket(address.ai_family, address.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol);
  if (file_ < 0) return false;
  const int yes = 1;
  ::setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  if (::connect(file_, address.ai_addr, address.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  wait_for(POLLOUT, deadline);
  int error = 0;
  socklen_t size = sizeof(error);
  if (::getsockopt(file_, SOL_SOCKET, SO_ERROR, &error, &size) < 0) return false;
  errno = error;
  return error == 0;
}

void Socket::wait_for(short events, const Deadline& deadline) const {
  for (;;) {
    deadline.require();
    pollfd waiting{.fd = file_, .events = events, .revents = 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(deadline.left().count()));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail("poll", errno);
  }
}

void Socket::send(Bytes bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      wait_for(POLLOUT, deadline);
    } else if (errno != EINTR) {
      fail("the connection broke", errno);
    }
    deadline.require();
  }
}

size_t Socket::receive(std::span<char> target, const Deadline& deadline) {
  for (;;) {
    deadline.require();
    const ssize_t count = ::recv(file_, target.data(), target.size(), 0);
    if (count > 0) return static_cast<size_t>(count);
    if (count == 0) throw ServerFailure("it closed the connection");
    if (errno == EAGAIN) {
      wait_for(POLLIN, deadline);
    } else if (errno != EINTR) {
      fail("the connection broke", errno);
    }
  }
}

}  // namespace ingot::core
