// SPDX-License-Identifier: Apache-2.0
// Times of a context's steps. A context has a profile only on request: otherwise nothing is measured.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/loaded_backends.h"
#include "runtime/roof.h"
#include "runtime/run_plan.h"

namespace ingot::core {

// Collects the runs since the sizes last changed. Steps are those of the main program; the time of a step
// includes its nested programs.
class StepProfile {
 public:
  using Clock = std::chrono::steady_clock;
  // Called after each step of the main program: whether its time counts, or something disturbed it.
  using Judge = std::function<bool()>;
  static constexpr int64_t kDisturbed = std::numeric_limits<int64_t>::max();  // in place of a time

  explicit StepProfile(Judge counts = {}) : counts_(std::move(counts)) {}

  void begin_run(const Executable& executable, const RunPlan& plan);
  void add(size_t step, Clock::time_point start, Clock::time_point end);
  // Steps one after another, which took so long.
  void add(size_t first, Clock::time_point start, std::span<const int64_t> nanoseconds);
  void end_run();

  // {"runs", "threads", "sizes": {symbol: value}, "median_ns" (of a run), "roof": {"operations_per_second"},
  // "device": {"name", "kernels", "bytes_per_second", "half_operations_per_second", "kernels_ns", and of what
  // it could do in that time "memory_share" and "compute_share"} (of engines on a device), "steps": [{"name",
  // "kind", "backend", "kernel" or "routine", "operators": [{"op", "name", "source"}], "median_ns", "min_ns",
  // "share" (of all steps), "operations", "bytes", "roof_share" (null if unknown), "start_ns", "last_ns" (of
  // the last run)}]}. UserError INGOT-U340 if nothing ran.
  std::string json(const EngineData& data, const LoadedBackends& backends, ThreadPool& pool) const;
  // The shortest time of each step, or kDisturbed; nothing if nothing ran.
  std::vector<int64_t> least_nanoseconds() const;

 private:
  struct StepRecord {
    int64_t operations = 0, bytes = 0;
    std::vector<int64_t> nanoseconds;  // one per completed run
    int64_t start = 0, last = 0;       // of the last run
  };
  void start_over(const Executable& executable, const RunPlan& plan);

  Judge counts_;              // may be empty
  std::vector<int64_t> key_;  // of the plan
  SymbolValues sizes_;
  std::vector<StepRecord> steps_;
  std::vector<int64_t> runs_;  // nanoseconds of whole runs
  Clock::time_point start_;
};

}  // namespace ingot::core
