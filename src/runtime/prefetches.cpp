// SPDX-License-Identifier: Apache-2.0
#include "runtime/prefetches.h"

#include <algorithm>

namespace ingot::core {

void list_prefetches(const WeightPlan& plan, const WeightSet& weights, std::byte* ring,
                     const ExecutableSpan& span, std::vector<Prefetch>& prefetches) {
  prefetches.clear();
  for (auto fetch = std::ranges::lower_bound(plan.fetches, span.first, {}, &WeightFetch::before);
       fetch != plan.fetches.end() && fetch->before < span.last; ++fetch) {
    prefetches.push_back({.from = weights.pinned[fetch->weight].get(),
                          .to = ring + fetch->offset,
                          .bytes = fetch->bytes,
                          .start = std::max(fetch->start, span.first) - span.first,
                          .before = fetch->before - span.first});
  }
}

void set_fetched_arguments(const WeightPlan& plan, std::byte* ring, const Executable& executable,
                           const RunPlan& sizes, Frame& frame) {
  for (const FetchedArgument& each : plan.arguments) {
    const ExecutableBuffer& buffer = executable.buffers[executable.arguments[each.argument]];
    frame.arguments[each.argument] = ring + plan.fetches[each.fetch].offset + sizes.values[buffer.offset];
  }
}

}  // namespace ingot::core
