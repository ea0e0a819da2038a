// SPDX-License-Identifier: Apache-2.0
#include "runtime/roof.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "support/machine_probes.h"

namespace ingot::core {
namespace {

constexpr int kRepeats = 40;              // the best counts: other processes only slow a probe down
constexpr double kProbeSeconds = 2.5e-4;  // of one repeat: often shorter than a time slice of theirs
constexpr size_t kLeastBytes = 1 << 14, kMostBytes = 1 << 28;

// Calls `probe(worker, times)` on all threads at once; the best rate of `units` per call and thread.
template <typename Probe>
double best_rate(ThreadPool& pool, double units, const Probe& probe) {
  using Clock = std::chrono::steady_clock;
  const int threads = pool.threads();
  int64_t times = 1;
  double best = 0;
  for (int repeat = 0; repeat < kRepeats;) {
    const auto start = Clock::now();
    pool.parallel_for(threads, 1, [&](int64_t begin, int64_t end, int) {
      for (int64_t part = begin; part < end; ++part) {
        for (int64_t i = 0; i < times; ++i) probe(part);
      }
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < kProbeSeconds / 2 && times < (int64_t{1} << 40)) {
      times *= 2;  // too short to measure
      continue;
    }
    best = std::max(best, units * static_cast<double>(times) * threads / seconds);
    ++repeat;
  }
  return best;
}

}  // namespace

Roof::Roof(ThreadPool& pool) : pool_(pool) {
  constexpr int64_t kRounds = 1000;
  const CpuFeatures features = host_cpu_features();
  const double operations = run_multiply_add_probe(features, kRounds);
  if (operations == 0) return;
  operations_ = best_rate(pool_, operations, [&](int64_t) { run_multiply_add_probe(features, kRounds); });
}

double Roof::bytes_per_second(int64_t bytes) {
  const size_t wanted = std::clamp(static_cast<size_t>(std::max<int64_t>(bytes, 1)), kLeastBytes, kMostBytes);
  const size_t size = std::bit_ceil(wanted);
  if (const auto known = reads_.find(size); known != reads_.end()) return known->second;
  const auto threads = static_cast<size_t>(pool_.threads());
  const size_t part = std::max<size_t>(size / threads / kReadBlock, 1) * kReadBlock;
  if (memory_.size() < part * threads)
    memory_.resize(part * threads, std::byte{1});  // written, so that each page is backed by memory
  const CpuFeatures features = host_cpu_features();
  const double rate = best_rate(pool_, static_cast<double>(part), [&](int64_t thread) {
    run_read_probe(features, {memory_.data() + part * static_cast<size_t>(thread), part});
  });
  return reads_[size] = rate;
}

}  // namespace ingot::core
