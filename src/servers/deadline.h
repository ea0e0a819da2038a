// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace ingot::core {

// What a server did wrong. It stays within this folder: callers see misses.
struct ServerFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// When a call ends at the latest, however slowly bytes arrive.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(std::chrono::milliseconds time) : end_(Clock::now() + time) {}

  // At least 0.
  std::chrono::milliseconds left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now());
    return std::max(left, std::chrono::milliseconds(0));
  }
  void require() const {
    if (left().count() == 0) throw ServerFailure("it did not answer in time");
  }

 private:
  Clock::time_point end_;
};

}  // namespace ingot::core
