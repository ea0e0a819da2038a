// SPDX-License-Identifier: Apache-2.0
#include "runtime/run_limits.h"

#include <atomic>
#include <chrono>

#include "support/error.h"

namespace ingot::core {

void require_within(const RunLimits& limits) {
  const auto is_set = [&] {
    return std::atomic_ref(*const_cast<int32_t*>(limits.cancel)).load(std::memory_order_acquire) != 0;
  };
  if (limits.cancel != nullptr && is_set()) throw UserError("INGOT-U316", "the run was cancelled");
  if (limits.deadline_ns == 0) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() >= limits.deadline_ns)
    throw UserError("INGOT-U317", "the run's deadline has passed", "allow more time, or use smaller inputs");
}

}  // namespace ingot::core
