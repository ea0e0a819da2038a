// SPDX-License-Identifier: Apache-2.0
// Groups of ranks over TCP: processes, or threads of one, on one machine or several (docs/design/040).
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "routines/communicator.h"

namespace ingot::core {

constexpr int kMostRanks = 1024;

// A port at which rank 0 listens before the ranks meet, so that the others can be told where.
class GroupListener {
 public:
  virtual ~GroupListener() = default;
  virtual const std::string& address() const = 0;  // "host:port"
};

// Port 0: one that is free. UserError INGOT-U353 if the address is not of this machine, or is taken.
std::shared_ptr<GroupListener> listen_for_group(const std::string& address);

struct GroupOptions {
  std::string name;     // for messages, and compared when the ranks meet
  std::string address;  // "host:port", at which rank 0 listens
  int rank = 0, size = 1;
  std::chrono::milliseconds deadline{60'000};         // for all ranks to meet, and for each exchange
  std::shared_ptr<GroupListener> listener = nullptr;  // of rank 0, instead of the address
};

// Connects to the other ranks, which call this too; returns when all are connected. UserError INGOT-U353 if
// the options contradict each other or those of another rank, DeviceError INGOT-D350 if ranks do not come
// within the deadline.
std::shared_ptr<Communicator> join_group(const GroupOptions& options);

}  // namespace ingot::core
