// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/run_plan.h"
#include "runtime/weight_plan.h"
#include "runtime/weight_set.h"

namespace ingot::core {

// The copies that calls of `span` need, which may be a part of one: then they start no earlier than that.
void list_prefetches(const WeightPlan& plan, const WeightSet& weights, std::byte* ring,
                     const ExecutableSpan& span, std::vector<Prefetch>& prefetches);

// Points the arguments that read such weights at their places in the ring.
void set_fetched_arguments(const WeightPlan& plan, std::byte* ring, const Executable& executable,
                           const RunPlan& sizes, Frame& frame);

}  // namespace ingot::core
