// SPDX-License-Identifier: Apache-2.0
#include "ranks/group.h"
#include "support/error.h"

namespace ingot::core {
namespace {

[[noreturn]] void refuse() {
  throw UnsupportedError("INGOT-N350", "groups of ranks need sockets, which Ingot does not use on Windows",
                         "run the ranks on Linux");
}

}  // namespace

std::shared_ptr<Communicator> join_group(const GroupOptions&) { refuse(); }
std::shared_ptr<GroupListener> listen_for_group(const std::string&) { refuse(); }

}  // namespace ingot::core
