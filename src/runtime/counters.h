// SPDX-License-Identifier: Apache-2.0
// What an engine's contexts have done so far, for whoever operates a server. docs/design/046-metrics.md.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ingot::core {

// Written by one thread at a time, read by any.
class Counter {
 public:
  void add() noexcept { set(value() + 1); }
  void set(uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
  uint64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// Counts of the contexts that had this block, one after another. Written by the thread that uses the context.
struct alignas(64) ContextCounters {
  Counter calls, plan_hits, plan_misses, plan_evictions;
  Counter arena_bytes, scratch_bytes, state_bytes, cached_plans;  // of the context that has it now
  std::atomic<bool> claimed{true};
  ContextCounters* next = nullptr;
};

// How often each error has ended a call. Any thread may count.
class ErrorCounts {
 public:
  void add(std::string_view code) noexcept;
  // Codes that were counted, in the order of their first error; those beyond the capacity are "other".
  std::vector<std::pair<std::string, uint64_t>> values() const;

 private:
  static constexpr size_t kCapacity = 64;
  struct Slot {
    std::atomic<uint32_t> code{0};
    std::atomic<uint64_t> count{0};
  };
  std::array<Slot, kCapacity> slots_;
  std::atomic<uint64_t> other_{0};
};

class EngineCounters {
 public:
  EngineCounters() = default;
  ~EngineCounters();
  EngineCounters(const EngineCounters&) = delete;
  EngineCounters& operator=(const EngineCounters&) = delete;

  struct GiveBack {
    void operator()(ContextCounters* counters) const noexcept;
  };
  using Claimed = std::unique_ptr<ContextCounters, GiveBack>;
  Claimed claim();  // ends before these counters do
  ErrorCounts& errors() { return errors_; }
  const ErrorCounts& errors() const { return errors_; }

  struct Totals {
    uint64_t calls = 0, plan_hits = 0, plan_misses = 0, plan_evictions = 0;
    uint64_t contexts = 0, arena_bytes = 0, scratch_bytes = 0, state_bytes = 0, cached_plans = 0;
  };
  Totals totals() const;

 private:
  std::atomic<ContextCounters*> first_{nullptr};
  ErrorCounts errors_;
};

}  // namespace ingot::core
