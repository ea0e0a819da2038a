// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "ranks/group.h"
#include "ranks/posix/meeting.h"
#include "ranks/posix/tcp_group.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void check_options(const GroupOptions& options) {
  if (options.size < 1 || options.size > kMostRanks)
    throw UserError("INGOT-U353",
                    fmt::format("a group cannot have {} ranks: 1 to {}", options.size, kMostRanks));
  if (options.rank < 0 || options.rank >= options.size)
    throw UserError("INGOT-U353",
                    fmt::format("a group of {} ranks has no rank {}", options.size, options.rank),
                    "ranks count from 0");
  if (options.deadline.count() < 1 || options.deadline.count() > 86'400'000)
    throw UserError("INGOT-U353", fmt::format("the deadline of a group cannot be {} ms: 1 to 86400000",
                                              options.deadline.count()));
  if (options.listener != nullptr && options.rank != 0)
    throw UserError("INGOT-U353", fmt::format("rank {} has a listener, which is rank 0's", options.rank));
}

}  // namespace

std::shared_ptr<Communicator> join_group(const GroupOptions& options) {
  check_options(options);
  return std::make_shared<TcpGroup>(options, meet(options));
}

}  // namespace ingot::core
