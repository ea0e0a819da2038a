// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ingot::core {

// When a run has to end before it is done.
struct RunLimits {
  int64_t deadline_ns = 0;          // of std::chrono::steady_clock; 0: none
  const int32_t* cancel = nullptr;  // not 0: as soon as possible; other threads write it. Null: never
};

struct RunOptions {
  RunLimits limits;
  void* stream = nullptr;  // of the engine's device, which the run joins; null: the context's own
};

// UserError INGOT-U316 if the run was cancelled, INGOT-U317 if its deadline has passed.
void require_within(const RunLimits& limits);

}  // namespace ingot::core
