// SPDX-License-Identifier: Apache-2.0
#include "ranks/posix/arrivals.h"

#include <thread>

#include "ranks/group.h"

namespace ingot::core {
namespace {

constexpr size_t kMostUnknown = 2 * kMostRanks;  // connections that have not said who they are

}  // namespace

Progress Arrivals::Arrival::receive() {
  Transfer<std::byte> rest{reinterpret_cast<std::byte*>(&hello) + received, sizeof(hello) - received};
  const Progress progress = connection.receive(rest);
  received = sizeof(hello) - rest.left;
  return progress;
}

std::vector<size_t> Arrivals::wait(const TimeLimit& limit, const std::vector<Connection*>& watched,
                                   const Take& take) {
  std::vector<pollfd> files{{.fd = listener_.file(), .events = POLLIN, .revents = 0}};
  for (const Arrival& each : unknown_)
    files.push_back({.fd = each.connection.file(), .events = POLLIN, .revents = 0});
  for (const Connection* each : watched)
    files.push_back({.fd = each->file(), .events = POLLIN, .revents = 0});
  wait_for_events(files, limit);
  std::vector<size_t> heard;
  for (size_t i = 0; i < watched.size(); ++i)
    if (files[1 + unknown_.size() + i].revents != 0) heard.push_back(i);
  read(files, take);
  // Else this process has as many files as it may: one may be closed meanwhile.
  if (files[0].revents != 0 && !accept()) std::this_thread::sleep_for(kRetry);
  return heard;
}

// `files`: the listener's, then those of `unknown_`.
void Arrivals::read(const std::vector<pollfd>& files, const Take& take) {
  for (size_t i = unknown_.size(); i-- > 0;) {
    if (files[i + 1].revents == 0) continue;
    const Progress progress = unknown_[i].receive();
    if (progress == Progress::kBlocked) continue;
    Arrival arrival = std::move(unknown_[i]);
    unknown_.erase(unknown_.begin() + static_cast<std::ptrdiff_t>(i));
    if (progress == Progress::kDone && arrival.hello.magic == kWireMagic)
      take(arrival.hello, std::move(arrival.connection));
  }
}

void Arrivals::each_waiting(const std::function<void(Connection&)>& tell) {
  accept();
  for (Arrival& each : unknown_) {
    each.receive();  // what is closed with bytes that nobody read is reset, and the answer lost
    tell(each.connection);
  }
}

bool Arrivals::accept() {
  bool is_any = false;
  while (auto accepted = listener_.accept()) {
    if (unknown_.size() == kMostUnknown) unknown_.erase(unknown_.begin());
    unknown_.push_back({.connection = std::move(*accepted), .hello = {}});
    is_any = true;
  }
  return is_any;
}

}  // namespace ingot::core
