// SPDX-License-Identifier: Apache-2.0
// The clock of a build. A phase lasts until the next one begins, so the phases add up to the wall time.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::core {

// Called between work items with an estimate of the remaining seconds (negative: unknown). Returning false
// cancels the build with UserError INGOT-U010.
struct Progress {
  std::string_view phase;
  size_t done, total;
  double remaining_seconds;
};
using ProgressCallback = std::function<bool(const Progress&)>;

class Phases {
 public:
  struct Phase {
    std::string name;
    double seconds;
  };

  // Starts the first phase; `progress` (may be empty) is first called by `begin` or `report`.
  explicit Phases(std::string first, ProgressCallback progress = {});

  // Ends the current phase and begins another. Throws if the build is cancelled.
  void begin(std::string name);
  // `done` of `total` work items of the current phase. Throws if the build is cancelled.
  void report(size_t done, size_t total);
  // All phases so far; the current one continues.
  std::vector<Phase> phases() const;

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const;  // in the current phase

  ProgressCallback progress_;
  std::vector<Phase> ended_;
  std::string name_;
  Clock::time_point start_;
};

}  // namespace ingot::core
