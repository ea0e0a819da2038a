// SPDX-License-Identifier: Apache-2.0
// How ranks find each other: all report to rank 0, which tells everyone where the others listen; then each
// connects to those before it.
#include "ranks/posix/meeting.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "support/error.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRetry{20};
constexpr size_t kMostUnknown = 2 * kMostRanks;  // connections that have not said who they are

struct Address {
  std::string host, port;
};

Address parse_address(const std::string& text) {
  const size_t colon = text.rfind(':');
  const std::string host = text.substr(0, colon);
  if (colon == std::string::npos || host.empty() || colon + 1 == text.size())
    throw UserError("INGOT-U353", fmt::format("'{}' is not the address of a group of ranks", text),
                    "give rank 0's as host:port, such as 127.0.0.1:29500");
  const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return {is_bracketed ? host.substr(1, host.size() - 2) : host, text.substr(colon + 1)};
}

uint64_t new_session() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

struct Meeting {
  const GroupOptions& options;
  TimeLimit limit;
  std::vector<Connection> connections;

  explicit Meeting(const GroupOptions& own)
      : options(own), limit(own.deadline), connections(static_cast<size_t>(own.size)) {}
  bool is_met(int rank) const { return connections[static_cast<size_t>(rank)].is_open(); }
  Hello hello() const {
    return {.rank = options.rank,
            .size = options.size,
            .deadline_ms = static_cast<uint32_t>(limit.left().count()),
            .group = short_hash(options.name)};
  }
  std::string describe() const {
    return fmt::format("group '{}' of {} ranks at {}", options.name, options.size, options.address);
  }
  // Ranks from `first` on that are not connected.
  std::vector<int> missing(int first) const {
    std::vector<int> ranks;
    for (int rank = first; rank < options.size; ++rank)
      if (rank != options.rank && !is_met(rank)) ranks.push_back(rank);
    return ranks;
  }
  // Tells the ranks that are connected.
  [[noreturn]] void fail(std::string_view code, const std::string& text) {
    const int number = code == "INGOT-U353" ? 353 : 350;
    const TimeLimit farewell(kFarewell);
    for (Connection& connection : connections)
      if (connection.is_open()) send_failure(connection, number, text, farewell);
    if (number == 353) throw UserError(code, text);
    throw DeviceError(code, text, "docs/ranks.md tells what each rank needs to find the others");
  }
  [[noreturn]] void fail_missing(const std::vector<int>& ranks) {
    fail("INGOT-D350", fmt::format("{}: {} did not come within {} ms", describe(), list_ranks(ranks),
                                   options.deadline.count()));
  }
};

// A connection that was accepted, and what it has sent of its hello.
struct Arrival {
  Connection connection;
  Hello hello;
  size_t received = 0;

  Progress receive() {
    Transfer<std::byte> rest{reinterpret_cast<std::byte*>(&hello) + received, sizeof(hello) - received};
    const Progress progress = connection.receive(rest);
    received = sizeof(hello) - rest.left;
    return progress;
  }
};

// Connections that do not say who they are, or say half of it, do not keep others waiting.
class Arrivals {
 public:
  explicit Arrivals(Listener& listener) : listener_(listener) {}

  template <typename Take>
  void wait(const TimeLimit& limit, Take&& take) {
    std::vector<pollfd> files{{.fd = listener_.file(), .events = POLLIN, .revents = 0}};
    for (const Arrival& each : unknown_)
      files.push_back({.fd = each.connection.file(), .events = POLLIN, .revents = 0});
    wait_for_events(files, limit);
    for (size_t i = unknown_.size(); i-- > 0;) {
      if (files[i + 1].revents == 0) continue;
      const Progress progress = unknown_[i].receive();
      if (progress == Progress::kBlocked) continue;
      Arrival arrival = std::move(unknown_[i]);
      unknown_.erase(unknown_.begin() + static_cast<std::ptrdiff_t>(i));
      if (progress == Progress::kDone && arrival.hello.magic == kWireMagic)
        take(arrival.hello, std::move(arrival.connection));
    }
    // Else this process has as many files as it may: one may be closed meanwhile.
    if (files[0].revents != 0 && !accept()) std::this_thread::sleep_for(kRetry);
  }

 private:
  // Whether there was any.
  bool accept() {
    bool is_any = false;
    while (auto accepted = listener_.accept()) {
      if (unknown_.size() == kMostUnknown) unknown_.erase(unknown_.begin());
      unknown_.push_back({.connection = std::move(*accepted), .hello = {}});
      is_any = true;
    }
    return is_any;
  }

  Listener& listener_;
  std::vector<Arrival> unknown_;
};

Listener open_listener(Meeting& meeting, const std::string& host, const std::string& port) {
  for (;;) {
    if (auto listener = Listener::open(host, port)) return std::move(*listener);
    if (meeting.limit.is_over())
      meeting.fail("INGOT-D350", fmt::format("{}: the port is taken", meeting.describe()));
    std::this_thread::sleep_for(kRetry);
  }
}

// Contradictions between rank 0 and a rank that reports to it.
void check_hello(Meeting& meeting, const Hello& hello, Connection& connection) {
  const auto refuse = [&](const std::string& text) {
    send_failure(connection, 353, text, TimeLimit(kFarewell));
    meeting.fail("INGOT-U353", text);
  };
  if (hello.size != meeting.options.size)
    refuse(
        fmt::format("{}: rank {} takes it for one of {} ranks", meeting.describe(), hello.rank, hello.size));
  if (hello.rank <= 0 || hello.rank >= meeting.options.size)
    refuse(fmt::format("{}: there can be no other rank {}", meeting.describe(), hello.rank));
  if (hello.group != short_hash(meeting.options.name))
    refuse(fmt::format("{}: rank {} has another name for the group", meeting.describe(), hello.rank));
  if (meeting.is_met(hello.rank))
    refuse(fmt::format("{}: two ranks call themselves {}", meeting.describe(), hello.rank));
}

// Rank 0: the first to be out of time is told the reason a little before.
void meet_as_first(Meeting& meeting) {
  const Address address = parse_address(meeting.options.address);
  Listener listener = open_listener(meeting, address.host, address.port);
  Arrivals arrivals(listener);
  std::vector<PeerAddress> addresses(meeting.connections.size());
  while (!meeting.missing(1).empty()) {
    if (meeting.limit.is_over()) meeting.fail_missing(meeting.missing(1));
    arrivals.wait(meeting.limit, [&](const Hello& hello, Connection connection) {
      check_hello(meeting, hello, connection);
      const auto rank = static_cast<size_t>(hello.rank);
      const milliseconds left(hello.deadline_ms);
      meeting.limit.shorten(left - std::min(left / 10, milliseconds(500)));
      const std::string host = connection.remote_host();
      host.copy(addresses[rank].host, sizeof(PeerAddress::host) - 1);
      addresses[rank].port = hello.port;
      meeting.connections[rank] = std::move(connection);
    });
  }
  const MessageHeader header{.kind = MessageKind::kWelcome,
                             .bytes = addresses.size() * sizeof(PeerAddress),
                             .sequence = new_session()};
  for (size_t rank = 1; rank < addresses.size(); ++rank) {
    Connection& connection = meeting.connections[rank];
    if (connection.send_all(&header, sizeof(header), meeting.limit) != Progress::kDone ||
        connection.send_all(addresses.data(), header.bytes, meeting.limit) != Progress::kDone)
      meeting.fail_missing({static_cast<int>(rank)});
  }
}

Connection reach(Meeting& meeting, const Address& address, int rank) {
  for (;;) {
    if (auto connection = connect_to(address.host, address.port, meeting.limit))
      return std::move(*connection);
    if (meeting.limit.is_over()) meeting.fail_missing({rank});
    std::this_thread::sleep_for(kRetry);
  }
}

[[noreturn]] void fail_as_told(Meeting& meeting, const MessageHeader& header) {
  std::string text(std::min(header.bytes, kMostText), '\0');
  meeting.connections[0].receive_all(text.data(), text.size(), meeting.limit);
  if (header.program == 353) throw UserError("INGOT-U353", text);
  throw DeviceError("INGOT-D350", text);
}

struct Welcome {
  uint64_t session = 0;
  std::vector<PeerAddress> addresses;
};

Welcome read_welcome(Meeting& meeting) {
  Connection& first = meeting.connections[0];
  Welcome welcome;
  welcome.addresses.resize(meeting.connections.size());
  const size_t bytes = welcome.addresses.size() * sizeof(PeerAddress);
  MessageHeader header;
  const Progress progress = first.receive_all(&header, sizeof(header), meeting.limit);
  if (progress == Progress::kDone && header.magic == kWireMagic && header.kind == MessageKind::kFailure)
    fail_as_told(meeting, header);
  const bool is_welcome = progress == Progress::kDone && header.magic == kWireMagic &&
                          header.kind == MessageKind::kWelcome && header.bytes == bytes;
  if (is_welcome && first.receive_all(welcome.addresses.data(), bytes, meeting.limit) == Progress::kDone) {
    welcome.session = header.sequence;
    return welcome;
  }
  meeting.connections[0] = {};
  meeting.fail("INGOT-D350", progress == Progress::kBroken
                                 ? fmt::format("{}: rank 0 ended while the ranks met", meeting.describe())
                                 : fmt::format("{}: rank 0 did not report the other ranks within {} ms",
                                               meeting.describe(), meeting.options.deadline.count()));
}

void connect_to_earlier(Meeting& meeting, const Welcome& welcome) {
  for (int rank = 1; rank < meeting.options.rank; ++rank) {
    PeerAddress peer = welcome.addresses[static_cast<size_t>(rank)];
    peer.host[sizeof(peer.host) - 1] = '\0';
    Connection connection = reach(meeting, {peer.host, std::to_string(peer.port)}, rank);
    Hello hello = meeting.hello();
    hello.session = welcome.session;
    if (connection.send_all(&hello, sizeof(hello), meeting.limit) != Progress::kDone)
      meeting.fail_missing({rank});
    meeting.connections[static_cast<size_t>(rank)] = std::move(connection);
  }
}

void meet_as_other(Meeting& meeting) {
  meeting.connections[0] = reach(meeting, parse_address(meeting.options.address), 0);
  Listener listener = open_listener(meeting, meeting.connections[0].local_host(), "0");
  Hello hello = meeting.hello();
  hello.port = listener.port();
  if (meeting.connections[0].send_all(&hello, sizeof(hello), meeting.limit) != Progress::kDone)
    meeting.fail_missing({0});
  const Welcome welcome = read_welcome(meeting);
  connect_to_earlier(meeting, welcome);
  Arrivals arrivals(listener);
  while (!meeting.missing(meeting.options.rank + 1).empty()) {
    if (meeting.limit.is_over()) meeting.fail_missing(meeting.missing(meeting.options.rank + 1));
    arrivals.wait(meeting.limit, [&](const Hello& from, Connection connection) {
      const bool is_expected = from.session == welcome.session && from.rank > meeting.options.rank &&
                               from.rank < meeting.options.size && !meeting.is_met(from.rank);
      if (is_expected) meeting.connections[static_cast<size_t>(from.rank)] = std::move(connection);
    });
  }
}

}  // namespace

std::string list_ranks(const std::vector<int>& ranks) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks[0]);
  const std::vector<int> all_but_last(ranks.begin(), ranks.end() - 1);
  return fmt::format("ranks {} and {}", fmt::join(all_but_last, ", "), ranks.back());
}

void send_failure(Connection& connection, int code, const std::string& text, const TimeLimit& limit) {
  const MessageHeader header{.kind = MessageKind::kFailure,
                             .bytes = std::min<uint64_t>(text.size(), kMostText),
                             .program = static_cast<uint64_t>(code)};
  if (connection.send_all(&header, sizeof(header), limit) == Progress::kDone)
    connection.send_all(text.data(), header.bytes, limit);
  connection.end_sending();
}

std::vector<Connection> meet(const GroupOptions& options) {
  Meeting meeting(options);
  if (options.size == 1) return std::move(meeting.connections);
  if (options.rank == 0)
    meet_as_first(meeting);
  else
    meet_as_other(meeting);
  return std::move(meeting.connections);
}

}  // namespace ingot::core
