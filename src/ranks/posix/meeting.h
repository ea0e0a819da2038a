// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ranks/group.h"
#include "ranks/posix/connection.h"
#include "ranks/posix/wire.h"

namespace ingot::core {

constexpr std::chrono::milliseconds kFarewell{200};  // to tell the others of a failure

// One connection per rank, the own one closed. Errors as those of `join_group`.
std::vector<Connection> meet(const GroupOptions& options);

// "rank 1", "ranks 1, 2 and 5".
std::string list_ranks(const std::vector<int>& ranks);

// A message of kind kFailure, the last one to that rank; gives up at the limit.
void send_failure(Connection& connection, int code, const std::string& text, const TimeLimit& limit);

}  // namespace ingot::core
