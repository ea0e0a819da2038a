// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/moving_graphs.h"

#include <algorithm>
#include <utility>

namespace ingot::core::cuda {

const ExecutableGraph* MovingGraphs::find(const Driver& driver, CallList& calls, const Capture& capture) {
  constexpr size_t kMostEntries = 4;
  constexpr uint32_t kListsBefore = 2;
  auto found = std::ranges::find_if(entries_, [&](const auto& each) { return calls.is_like(each->list); });
  if (found == entries_.end()) {
    if (entries_.size() == kMostEntries) entries_.pop_back();
    found = entries_.insert(entries_.end(), std::unique_ptr<Entry>(new Entry{calls}));
  }
  std::rotate(entries_.begin(), found, found + 1);
  std::unique_ptr<Entry> entry = std::move(entries_.front());
  entries_.erase(entries_.begin());  // until its graph is right: whatever fails, no other call gets it
  if (!entry->graph && ++entry->lists > kListsBefore) {
    entry->graph.reset(new ExecutableGraph(capture(calls)));
    entry->list = calls;
  } else if (entry->graph && entry->graph->has_nodes()) {
    calls.update(driver, entry->list, entry->graph->handle(), entry->graph->nodes());
    entry->list = calls;
  }
  const bool is_right = entry->graph && entry->list == calls;
  entries_.insert(entries_.begin(), std::move(entry));
  return is_right ? entries_.front()->graph.get() : nullptr;
}

}  // namespace ingot::core::cuda
