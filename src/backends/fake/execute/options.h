// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace ingot::core::fake {

struct Options {
  uint64_t seed = 1;            // of the delays
  int most_microseconds = 100;  // of a delay before a call
  bool has_collectives = true;  // else they go over the host
};

// What all queues of a device have done, for tests.
struct Counts {
  // `repeats`: of the replays, those without a look at the calls.
  std::atomic<int64_t> calls{0}, graphs{0}, replays{0}, repeats{0};
};

}  // namespace ingot::core::fake
