// SPDX-License-Identifier: Apache-2.0
#include "ranks/posix/tcp_group.h"

#include <algorithm>

#include <fmt/core.h>

#include "ranks/posix/meeting.h"
#include "support/error.h"
#include "support/fork.h"

namespace ingot::core {
namespace {

using std::chrono::milliseconds;

constexpr int kEnded = 350, kDiffers = 351;  // of the codes INGOT-D350 and D351, in messages

std::byte* bytes_of(MessageHeader& header) { return reinterpret_cast<std::byte*>(&header); }

bool is_sign_of_life(const MessageHeader& header) {
  return header.magic == kWireMagic && header.kind == MessageKind::kAlive;
}

}  // namespace

TcpGroup::TcpGroup(const GroupOptions& options, std::vector<Connection> connections)
    : options_(options),
      forks_(fork_count()),
      connections_(std::move(connections)),
      peers_(connections_.size()),
      signs_(connections_.size()) {}

// Before the mutex, whose holder may be a thread that a child does not have.
void TcpGroup::require_own_process() const {
  if (forks_ != fork_count())
    throw DeviceError("INGOT-D352",
                      fmt::format("group '{}' belongs to the process that forked this one", options_.name),
                      "join a group after the fork");
}

void TcpGroup::require_usable() const {
  if (!failure_.empty())
    throw DeviceError(
        "INGOT-D352",
        fmt::format("group '{}' is unusable since an earlier failure: {}", options_.name, failure_),
        std::string(advice_for_group("INGOT-D352")));
}

void TcpGroup::exchange(std::span<const SentBlock> sent, std::span<const ReceivedBlock> received,
                        const ExchangeTag& tag) {
  require_own_process();
  const std::lock_guard lock(mutex_);
  require_usable();
  start(sent, received, tag);
  ++sequence_;
  wait();
}

bool TcpGroup::is_usable() const { return forks_ == fork_count() && !has_failed_; }

bool TcpGroup::is_whole() {
  if (!is_usable()) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return true;  // an exchange notices by itself
  try {
    look_for_ends();
  } catch (const DeviceError&) {
  }
  return is_usable();
}

// Between exchanges.
void TcpGroup::look_for_ends() {
  forget_exchange();
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == options_.rank) continue;
    if (look_after(rank) == Progress::kBroken)
      fail("INGOT-D350", fmt::format("group '{}': rank {} ended", options_.name, rank), {rank});
  }
}

// To ranks that have room for it: there is none if they have not read for long.
std::string TcpGroup::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::string_view TcpGroup::failure_code() {
  const std::lock_guard lock(mutex_);
  return failure_code_;
}

void TcpGroup::leave(const std::string& text) {
  if (forks_ != fork_count()) return;
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) return;
  has_failed_ = true;
  failure_ = fmt::format("group '{}': a run of rank {} failed: {}", options_.name, options_.rank, text);
  forget_exchange();
  tell_others(kEnded, failure_, {});
}

// Nothing of a message is under way.
void TcpGroup::forget_exchange() {
  peers_.assign(peers_.size(), Peer{.header_out = {nullptr, sizeof(MessageHeader)}});
}

void TcpGroup::start(std::span<const SentBlock> sent, std::span<const ReceivedBlock> received,
                     const ExchangeTag& tag) {
  const TimeLimit limit(options_.deadline);
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == options_.rank) continue;
    const SentBlock& block = sent[static_cast<size_t>(rank)];
    const ReceivedBlock& room = received[static_cast<size_t>(rank)];
    Peer& own = peer(rank);
    own = {};
    own.limit = limit;
    own.sent_header = {.bytes = block.bytes,
                       .sequence = sequence_.load(),
                       .program = tag.program,
                       .collective = tag.collective,
                       .elements = tag.elements};
    own.header_out = {bytes_of(own.sent_header), sizeof(MessageHeader)};
    own.out = {block.data, block.bytes};
    own.header_in = {bytes_of(own.received_header), sizeof(MessageHeader)};
    own.in = {room.data, room.bytes};
    send_to(rank);
  }
}

std::vector<int> TcpGroup::unfinished() const {
  std::vector<int> ranks;
  for (int rank = 0; rank < options_.size; ++rank) {
    const Peer& own = peers_[static_cast<size_t>(rank)];
    if (rank != options_.rank && (own.is_sending() || own.is_receiving())) ranks.push_back(rank);
  }
  return ranks;
}

// When the first of those that are not done is out of time; fails with those that are now.
TimeLimit TcpGroup::require_in_time(const std::vector<int>& open) {
  std::vector<int> late;
  TimeLimit first = peer(open.front()).limit;
  for (const int rank : open) {
    first = std::min(first, peer(rank).limit);
    if (peer(rank).limit.is_over()) late.push_back(rank);
  }
  if (!late.empty())
    fail("INGOT-D350",
         fmt::format("group '{}': {} did not answer within {} ms", options_.name, list_ranks(late),
                     options_.deadline.count()),
         late);
  return first;
}

void TcpGroup::wait() {
  for (;;) {
    const std::vector<int> open = unfinished();
    if (open.empty()) return look_after_all();
    const TimeLimit limit = require_in_time(open);
    files_.clear();
    ranks_of_files_.clear();
    for (int rank = 0; rank < size(); ++rank) {
      if (rank == options_.rank) continue;
      const Peer& own = peer(rank);
      const bool reads = own.is_receiving() || own.is_watched;
      const auto events = static_cast<short>((own.is_sending() ? POLLOUT : 0) | (reads ? POLLIN : 0));
      if (events == 0) continue;
      files_.push_back({.fd = connection(rank).file(), .events = events, .revents = 0});
      ranks_of_files_.push_back(rank);
    }
    wait_for_events(files_, limit);
    for (size_t i = 0; i < files_.size(); ++i)
      if (files_[i].revents != 0) advance(ranks_of_files_[i], files_[i].revents);
  }
}

// What a rank has sent is read before its end is noticed: it may say why.
void TcpGroup::advance(int rank, short events) {
  Peer& own = peer(rank);
  const bool has_ended = (events & (POLLERR | POLLHUP)) != 0;
  if ((events & POLLIN) != 0 || has_ended) {
    if (own.is_receiving())
      receive_from(rank);
    else if (own.is_watched)
      look_after(rank);
  }
  if (own.is_sending() && ((events & POLLOUT) != 0 || has_ended)) send_to(rank);
}

void TcpGroup::send_to(int rank) {
  Peer& own = peer(rank);
  Progress progress = connection(rank).send(own.header_out);
  if (progress == Progress::kDone) progress = connection(rank).send(own.out);
  if (progress != Progress::kBroken) return;
  // It does not take more: what it sent before may say why. If it is done, this is the end of it.
  own.header_out = {};
  own.out = {};
  if (!own.is_receiving())
    fail("INGOT-D350", fmt::format("group '{}': rank {} ended", options_.name, rank), {rank});
}

void TcpGroup::receive_from(int rank) {
  Peer& own = peer(rank);
  Progress progress = connection(rank).receive(own.header_in);
  while (progress == Progress::kDone && !own.is_checked && is_sign_of_life(own.received_header)) {
    own.limit = TimeLimit(options_.deadline);
    take_sign(rank, own.received_header);
    own.header_in = {bytes_of(own.received_header), sizeof(MessageHeader)};
    progress = connection(rank).receive(own.header_in);
  }
  if (progress == Progress::kDone) {
    if (!own.is_checked) check_header(rank);
    progress = connection(rank).receive(own.in);
  }
  if (progress == Progress::kBroken)
    fail("INGOT-D350", fmt::format("group '{}': rank {} ended", options_.name, rank), {rank});
}

// This rank may have been late, and the others have given up behind their blocks.
void TcpGroup::look_after_all() {
  for (int rank = 0; rank < size(); ++rank)
    if (rank != options_.rank && peer(rank).is_watched) look_after(rank);
}

// A rank that is done with this exchange may begin the next one, report a failure, or end (kBroken).
Progress TcpGroup::look_after(int rank) {
  MessageHeader header;
  bool was_alive = false;
  Progress progress = connection(rank).peek(bytes_of(header), sizeof(header));
  while (progress == Progress::kDone && is_sign_of_life(header)) {
    was_alive = true;
    take_sign(rank, header);
    Transfer<std::byte> read{bytes_of(header), sizeof(header)};
    connection(rank).receive(read);
    progress = connection(rank).peek(bytes_of(header), sizeof(header));
  }
  if (progress == Progress::kDone && header.kind == MessageKind::kFailure) {
    peer(rank).header_in = {bytes_of(peer(rank).received_header), sizeof(MessageHeader)};
    peer(rank).is_checked = false;
    receive_from(rank);
  }
  signs_[static_cast<size_t>(rank)].is_in_exchange = progress == Progress::kDone;
  peer(rank).is_watched = was_alive && progress == Progress::kBlocked;  // else it begins the next exchange
  return progress;
}

void TcpGroup::check_header(int rank) {
  Peer& own = peer(rank);
  const MessageHeader& theirs = own.received_header;
  if (theirs.magic != kWireMagic)
    fail("INGOT-D351",
         fmt::format("group '{}': rank {} sent something that is not a message", options_.name, rank),
         {rank});
  if (theirs.kind == MessageKind::kFailure) read_failure(rank);
  const MessageHeader& ours = own.sent_header;
  if (theirs.program != ours.program)
    fail("INGOT-D351",
         fmt::format("group '{}': rank {} runs another engine than rank {}", options_.name, rank,
                     options_.rank),
         {rank});
  const bool is_same = theirs.kind == MessageKind::kData && theirs.collective == ours.collective &&
                       theirs.sequence == ours.sequence;
  if (!is_same)
    fail("INGOT-D351",
         fmt::format("group '{}': rank {} runs another collective than rank {}", options_.name, rank,
                     options_.rank),
         {rank});
  if (theirs.elements != ours.elements)
    fail("INGOT-D351",
         fmt::format("group '{}': rank {} has {} elements, rank {} has {}: tensors of other sizes",
                     options_.name, rank, theirs.elements, options_.rank, ours.elements),
         {rank});
  if (theirs.bytes != own.in.left)
    fail(
        "INGOT-D351",
        fmt::format("group '{}': rank {} sends {} bytes to rank {}, which expects {}: tensors of other sizes",
                    options_.name, rank, theirs.bytes, options_.rank, own.in.left),
        {rank});
  own.is_checked = true;
}

// The failure that another rank met first.
void TcpGroup::read_failure(int rank) {
  const MessageHeader header = peer(rank).received_header;
  std::string text(std::min(header.bytes, kMostText), '\0');
  const TimeLimit limit(kFarewell);
  if (connection(rank).receive_all(text.data(), text.size(), limit) != Progress::kDone)
    text = fmt::format("group '{}': rank {} met a failure", options_.name, rank);
  fail(header.program == uint64_t{kDiffers} ? "INGOT-D351" : "INGOT-D350", text, {rank});
}

void TcpGroup::fail(std::string_view code, const std::string& text, const std::vector<int>& culprits) {
  has_failed_ = true;
  failure_ = text;
  failure_code_ = code == "INGOT-D351" ? "INGOT-D351" : "INGOT-D350";
  tell_others(code == "INGOT-D351" ? kDiffers : kEnded, text, culprits);
  throw DeviceError(code, text, std::string(advice_for_group(code)));
}

// A message that is under way is completed first. False if it cannot be.
bool TcpGroup::tell(int rank, int code, const std::string& text, const TimeLimit& limit) {
  Peer& own = peer(rank);
  const bool is_begun = own.header_out.left < sizeof(MessageHeader);
  if (is_begun &&
      (connection(rank).send_all(own.header_out.next, own.header_out.left, limit) != Progress::kDone ||
       connection(rank).send_all(own.out.next, own.out.left, limit) != Progress::kDone)) {
    connection(rank).end_sending();
    return false;
  }
  send_failure(connection(rank), code, text, limit);
  return true;
}

// All within one limit, those that did not cause the failure first. Then waits a moment for them to close
// too: closing while they still send would make the system throw away what they have not read yet. A culprit
// that is merely different hears of it as well, and one that was late finds it behind the blocks that it did
// not read, if there is room.
void TcpGroup::tell_others(int code, const std::string& text, const std::vector<int>& culprits) {
  const TimeLimit limit(kFarewell);
  std::vector<int> told;
  for (int rank = 0; rank < size(); ++rank) {
    const bool is_culprit = std::ranges::find(culprits, rank) != culprits.end();
    if (rank != options_.rank && !is_culprit && tell(rank, code, text, limit)) told.push_back(rank);
  }
  for (const int culprit : culprits) {
    const bool is_different = code == kDiffers;
    const bool is_told = tell(culprit, code, text, is_different ? limit : TimeLimit(milliseconds(0)));
    if (is_different && is_told) told.push_back(culprit);
    connection(culprit).end_sending();
  }
  std::byte dropped[4096];
  for (const int rank : told) {
    while (!limit.is_over()) {
      Transfer<std::byte> rest{dropped, sizeof(dropped)};
      if (connection(rank).receive(rest) == Progress::kBroken) break;
      if (rest.left < sizeof(dropped)) continue;
      std::vector<pollfd> file{{.fd = connection(rank).file(), .events = POLLIN, .revents = 0}};
      wait_for_events(file, limit);
    }
  }
}

}  // namespace ingot::core
