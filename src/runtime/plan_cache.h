// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "runtime/run_plan.h"

namespace ingot::core {

// The plans of recent shapes, most recently used first. Bounded, so that a context with ever new shapes stays
// small.
class PlanCache {
 public:
  static constexpr size_t kCapacity = 32;

  RunPlan* front() const { return plans_.empty() ? nullptr : plans_.front().get(); }
  size_t size() const { return plans_.size(); }
  bool is_full() const { return plans_.size() == kCapacity; }  // adding a plan then drops one

  // Null if there is no plan for `key`.
  RunPlan* find(std::span<const int64_t> key) {
    const auto found =
        std::ranges::find_if(plans_, [&](const auto& plan) { return std::ranges::equal(plan->key, key); });
    if (found == plans_.end()) return nullptr;
    std::rotate(plans_.begin(), found, found + 1);
    return front();
  }

  RunPlan* add(RunPlan plan) {
    if (is_full()) plans_.pop_back();
    plans_.insert(plans_.begin(), std::make_unique<RunPlan>(std::move(plan)));
    front()->number = ++added_;
    return front();
  }

 private:
  std::vector<std::unique_ptr<RunPlan>> plans_;
  uint64_t added_ = 0;
};

}  // namespace ingot::core
