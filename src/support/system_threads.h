// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <thread>

namespace ingot::core {

// Keeps signals away from threads that are started during its lifetime: they are for those of the host
// program. Windows has no such signals.
class BlockedSignals {
 public:
  BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals();

 private:
  std::array<uint64_t, 16> before_{};  // what was blocked
};

void name_thread(std::thread& thread, const std::string& name);  // for debuggers; at most 15 characters

// How many threads the affinity mask of this process allows, at least 1.
int allowed_threads();

}  // namespace ingot::core
