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

#include "ranks/posix/address.h"
#include "ranks/posix/arrivals.h"
#include "support/error.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

using std::chrono::milliseconds;

uint64_t new_session() {
  std::random_device device;
  return (uint64_t{device()} << 32 | device()) | 1;
}

struct Meeting {
  const GroupOptions& options;
  const std::string address;  // rank 0's
  TimeLimit limit;
  std::vector<Connection> connections;
  std::vector<bool> is_watched;  // connections of which nothing is expected but the end, or a failure

  explicit Meeting(const GroupOptions& own)
      : options(own),
        address(own.listener == nullptr ? own.address : own.listener->address()),
        limit(own.deadline),
        connections(static_cast<size_t>(own.size)),
        is_watched(connections.size(), true) {}
  bool is_met(int rank) const { return connections[static_cast<size_t>(rank)].is_open(); }
  Hello hello() const {
    return {.rank = options.rank,
            .size = options.size,
            .deadline_ms = static_cast<uint32_t>(limit.left().count()),
            .group = short_hash(options.name)};
  }
  std::string describe() const {
    return fmt::format("group '{}' of {} ranks at {}", options.name, options.size, address);
  }
  // Ranks from `first` on that are not connected.
  std::vector<int> missing(int first) const {
    std::vector<int> ranks;
    for (int rank = first; rank < options.size; ++rank)
      if (rank != options.rank && !is_met(rank)) ranks.push_back(rank);
    return ranks;
  }
  // Ranks that are connected and watched.
  std::vector<int> watched() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < options.size; ++rank)
      if (is_met(rank) && is_watched[static_cast<size_t>(rank)]) ranks.push_back(rank);
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

Listener open_listener(Meeting& meeting, const std::string& host, const std::string& port) {
  for (;;) {
    if (auto listener = Listener::open(host, port)) return std::move(*listener);
    if (meeting.limit.is_over())
      meeting.fail("INGOT-D350", fmt::format("{}: rank {} cannot listen, the port is taken",
                                             meeting.describe(), meeting.options.rank));
    std::this_thread::sleep_for(kRetry);
  }
}

[[noreturn]] void fail_as_told(Meeting& meeting, Connection& connection, const MessageHeader& header) {
  std::string text(std::min(header.bytes, kMostText), '\0');
  connection.receive_all(text.data(), text.size(), TimeLimit(kFarewell));
  meeting.fail(header.program == 353 ? "INGOT-U353" : "INGOT-D350", text);
}

// A rank that is connected sent something, or ended.
void hear(Meeting& meeting, int rank) {
  Connection& connection = meeting.connections[static_cast<size_t>(rank)];
  MessageHeader header;
  const Progress progress = connection.peek(reinterpret_cast<std::byte*>(&header), sizeof(header));
  if (progress == Progress::kBroken && meeting.options.rank == 0) {
    connection = {};
    meeting.fail("INGOT-D350",
                 fmt::format("{}: rank {} ended while the ranks met", meeting.describe(), rank));
  }
  const bool is_failure = progress == Progress::kDone && header.kind == MessageKind::kFailure;
  if (is_failure && connection.receive_all(&header, sizeof(header), TimeLimit(kFarewell)) == Progress::kDone)
    fail_as_told(meeting, connection, header);
  meeting.is_watched[static_cast<size_t>(rank)] = false;  // it has met all others, and goes on or ends
}

void wait_for_arrivals(Meeting& meeting, Arrivals& arrivals, int first, const Arrivals::Take& take) {
  while (!meeting.missing(first).empty()) {
    if (meeting.limit.is_over()) meeting.fail_missing(meeting.missing(first));
    const std::vector<int> watched = meeting.watched();
    std::vector<Connection*> connections;
    for (const int rank : watched) connections.push_back(&meeting.connections[static_cast<size_t>(rank)]);
    for (const size_t i : arrivals.wait(meeting.limit, connections, take)) hear(meeting, watched[i]);
  }
}

// Until all ranks from `first` on are connected. Those that have come, but were not heard yet, hear of a
// failure too.
void wait_for_later(Meeting& meeting, Listener& listener, int first, const Arrivals::Take& take) {
  Arrivals arrivals(listener);
  try {
    wait_for_arrivals(meeting, arrivals, first, take);
  } catch (const Error& error) {
    const int code = error.details().code == "INGOT-U353" ? 353 : 350;
    const TimeLimit farewell(kFarewell);
    arrivals.each_waiting(
        [&](Connection& connection) { send_failure(connection, code, error.details().message, farewell); });
    throw;
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

// The ranks that know the reason are out of time a little before those that wait for them.
milliseconds shortened(milliseconds left) { return left - std::min(left / 10, milliseconds(500)); }

Listener& listener_of_first(Meeting& meeting, std::optional<Listener>& own) {
  if (auto* given = static_cast<TcpGroupListener*>(meeting.options.listener.get())) return given->listener();
  const Address address = parse_address(meeting.address);
  return own.emplace(open_listener(meeting, address.host, address.port));
}

void meet_as_first(Meeting& meeting) {
  std::optional<Listener> own;
  Listener& listener = listener_of_first(meeting, own);
  std::vector<PeerAddress> addresses(meeting.connections.size());
  wait_for_later(meeting, listener, 1, [&](const Hello& hello, Connection connection) {
    check_hello(meeting, hello, connection);
    const auto rank = static_cast<size_t>(hello.rank);
    meeting.limit.shorten(shortened(milliseconds(hello.deadline_ms)));
    const std::string host = connection.remote_host();
    host.copy(addresses[rank].host, sizeof(PeerAddress::host) - 1);
    addresses[rank].port = hello.port;
    meeting.connections[rank] = std::move(connection);
  });
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
    fail_as_told(meeting, first, header);
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
  meeting.connections[0] = reach(meeting, parse_address(meeting.address), 0);
  Listener listener = open_listener(meeting, meeting.connections[0].local_host(), "0");
  Hello hello = meeting.hello();
  hello.port = listener.port();
  if (meeting.connections[0].send_all(&hello, sizeof(hello), meeting.limit) != Progress::kDone)
    meeting.fail_missing({0});
  const Welcome welcome = read_welcome(meeting);
  meeting.limit.shorten(shortened(meeting.limit.left()));
  connect_to_earlier(meeting, welcome);
  wait_for_later(meeting, listener, meeting.options.rank + 1, [&](const Hello& from, Connection connection) {
    const bool is_expected = from.session == welcome.session && from.rank > meeting.options.rank &&
                             from.rank < meeting.options.size && !meeting.is_met(from.rank);
    if (is_expected) meeting.connections[static_cast<size_t>(from.rank)] = std::move(connection);
  });
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
