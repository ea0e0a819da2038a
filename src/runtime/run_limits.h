// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ingot::core {

class Engine;

// Limits that end a run early.
struct RunLimits {
  int64_t deadline_ns = 0;          // of std::chrono::steady_clock; 0: none
  const int32_t* cancel = nullptr;  // nonzero: end as soon as possible; other threads write it. Null: never
};

struct RunOptions {
  RunLimits limits;
  void* stream = nullptr;           // of the engine's device: the run joins it; null: the context's own
  const Engine* weights = nullptr;  // a copy of the engine, whose weights count; null: the engine's own
};

// UserError INGOT-U316 if the run was cancelled, INGOT-U317 if its deadline has passed.
void require_within(const RunLimits& limits);

}  // namespace ingot::core
