// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ranks/group.h"
#include "ranks/posix/connection.h"
#include "ranks/posix/wire.h"

namespace ingot::core {

// One connection per rank, the own one closed. Errors as those of `join_group`.
std::vector<Connection> meet(const GroupOptions& options);

// "rank 1", "ranks 1, 2 and 5".
std::string list_ranks(const std::vector<int>& ranks);

// A message of kind kFailure; gives up after a moment.
void send_failure(Connection& connection, int code, const std::string& text);

}  // namespace ingot::core
