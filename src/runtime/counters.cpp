// SPDX-License-Identifier: Apache-2.0
#include "runtime/counters.h"

#include <algorithm>

#include <fmt/core.h>

namespace ingot::core {
namespace {

constexpr std::string_view kPrefix = "INGOT-";
constexpr size_t kCodeLength = kPrefix.size() + 4;  // "INGOT-U303"

// 0 if it is not a code.
uint32_t pack(std::string_view code) {
  if (code.size() != kCodeLength || !code.starts_with(kPrefix)) return 0;
  uint32_t packed = static_cast<unsigned char>(code[kPrefix.size()]);
  for (const char digit : code.substr(kPrefix.size() + 1)) {
    if (digit < '0' || digit > '9') return 0;
    packed = packed * 10 + static_cast<uint32_t>(digit - '0');
  }
  return packed;
}

std::string unpack(uint32_t code) {
  return fmt::format("{}{}{:03}", kPrefix, static_cast<char>(code / 1000), code % 1000);
}

}  // namespace

void ErrorCounts::add(std::string_view code) noexcept {
  const uint32_t packed = pack(code);
  for (Slot& slot : slots_) {
    uint32_t found = slot.code.load(std::memory_order_relaxed);
    if (packed == 0) break;
    if (found == 0 && slot.code.compare_exchange_strong(found, packed, std::memory_order_relaxed))
      found = packed;
    if (found != packed) continue;  // also if another thread took the slot just now
    slot.count.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  other_.fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::pair<std::string, uint64_t>> ErrorCounts::values() const {
  std::vector<std::pair<std::string, uint64_t>> values;
  for (const Slot& slot : slots_) {
    const uint32_t code = slot.code.load(std::memory_order_relaxed);
    if (code != 0) values.emplace_back(unpack(code), slot.count.load(std::memory_order_relaxed));
  }
  const uint64_t other = other_.load(std::memory_order_relaxed);
  if (other != 0) values.emplace_back("other", other);
  return values;
}

EngineCounters::~EngineCounters() {
  for (ContextCounters* each = first_.load(); each != nullptr;) delete std::exchange(each, each->next);
}

EngineCounters::Claimed EngineCounters::claim() {
  for (ContextCounters* each = first_.load(std::memory_order_acquire); each != nullptr; each = each->next) {
    bool claimed = false;
    if (!each->claimed.load(std::memory_order_relaxed) &&
        each->claimed.compare_exchange_strong(claimed, true, std::memory_order_acquire))
      return Claimed(each);
  }
  auto* added = new ContextCounters;
  added->next = first_.load(std::memory_order_relaxed);
  while (!first_.compare_exchange_weak(added->next, added, std::memory_order_release)) {
  }
  return Claimed(added);
}

void EngineCounters::GiveBack::operator()(ContextCounters* counters) const noexcept {
  for (Counter* held :
       {&counters->arena_bytes, &counters->scratch_bytes, &counters->state_bytes, &counters->cached_plans})
    held->set(0);
  counters->claimed.store(false, std::memory_order_release);
}

EngineCounters::Totals EngineCounters::totals() const {
  Totals sum;
  for (const auto* each = first_.load(std::memory_order_acquire); each != nullptr; each = each->next) {
    sum.calls += each->calls.value();
    sum.plan_hits += each->plan_hits.value();
    sum.plan_misses += each->plan_misses.value();
    sum.plan_evictions += each->plan_evictions.value();
    sum.contexts += each->claimed.load(std::memory_order_relaxed) ? 1 : 0;
    sum.arena_bytes += each->arena_bytes.value();
    sum.scratch_bytes += each->scratch_bytes.value();
    sum.state_bytes += each->state_bytes.value();
    sum.cached_plans += each->cached_plans.value();
  }
  return sum;
}

}  // namespace ingot::core
