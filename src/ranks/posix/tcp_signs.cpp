// SPDX-License-Identifier: Apache-2.0
// What the ranks of a TcpGroup tell each other beside exchanges: that they are alive, and the work of their
// devices.
#include <algorithm>

#include <fmt/core.h>

#include "ranks/posix/meeting.h"
#include "ranks/posix/tcp_group.h"
#include "support/error.h"

namespace ingot::core {

void TcpGroup::say_alive() {
  if (!is_usable()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !failure_.empty()) return;  // an exchange is a sign of life too
  tell_alive({.kind = MessageKind::kAlive});
}

void TcpGroup::tell_alive(const MessageHeader& header) {
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == options_.rank) continue;
    std::vector<pollfd> file{{.fd = connection(rank).file(), .events = POLLOUT, .revents = 0}};
    wait_for_events(file, TimeLimit(std::chrono::milliseconds(0)));
    if ((file[0].revents & POLLOUT) != 0)
      connection(rank).send_all(&header, sizeof(header), TimeLimit(kFarewell));
  }
}

bool TcpGroup::watch(const DeviceWork& work) {
  if (!is_usable()) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || !failure_.empty()) return is_usable();  // an exchange notices by itself
  try {
    tell_alive({.kind = MessageKind::kAlive, .sequence = work.number, .collective = work.history});
    look_for_ends();
    compare_work(work);
  } catch (const DeviceError&) {
  }
  return is_usable();
}

void TcpGroup::compare_work(const DeviceWork& work) {
  const auto now = TimeLimit::Clock::now();
  std::vector<int> late;
  for (int rank = 0; rank < size(); ++rank) {
    if (rank == options_.rank) continue;
    const Sign& sign = signs_[static_cast<size_t>(rank)];
    const bool is_late = now - std::max(sign.at, work.since) > options_.deadline;
    if (is_late && !sign.is_in_exchange) late.push_back(rank);
    const bool is_other = sign.number == work.number && sign.history != work.history;
    const bool is_elsewhere = !is_late && sign.number != 0 && sign.number != work.number &&
                              now - std::max(sign.at_this_work, work.since) > options_.deadline;
    if (is_other || is_elsewhere || (is_late && sign.is_in_exchange))
      fail("INGOT-D351",
           fmt::format("group '{}': rank {} runs another collective than rank {}", options_.name, rank,
                       options_.rank),
           {rank});
  }
  if (!late.empty())
    fail("INGOT-D350",
         fmt::format("group '{}': {} did not answer within {} ms", options_.name, list_ranks(late),
                     options_.deadline.count()),
         late);
}

void TcpGroup::take_sign(int rank, const MessageHeader& header) {
  Sign& sign = signs_[static_cast<size_t>(rank)];
  sign.at = TimeLimit::Clock::now();
  if (header.sequence != sign.number) sign.at_this_work = sign.at;
  sign.number = header.sequence;
  sign.history = header.collective;
}

}  // namespace ingot::core
