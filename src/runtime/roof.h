// SPDX-License-Identifier: Apache-2.0
// Peak rates of this machine with the threads of a pool, measured on demand: the limits that a profile
// compares with.
#pragma once

#include <map>
#include <vector>

#include "support/thread_pool.h"

namespace ingot::core {

class Roof {
 public:
  explicit Roof(ThreadPool& pool);

  // f32 multiply-adds in registers, two operations each; 0 if there is no probe.
  double operations_per_second() const { return operations_; }
  // Reads `bytes` bytes repeatedly, so that caches that hold them count. Sizes are rounded up to a power of
  // two, and each is measured once.
  double bytes_per_second(int64_t bytes);

 private:
  ThreadPool& pool_;
  double operations_ = 0;
  std::vector<std::byte> memory_;
  std::map<size_t, double> reads_;  // by rounded size
};

}  // namespace ingot::core
