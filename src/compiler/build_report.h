// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compiler/repeats.h"
#include "compiler/target_pipeline.h"
#include "partition/partition.h"
#include "passes/pass_runner.h"

namespace ingot::core {

// What a build did, for reports: filled as far as it got.
struct BuildReport {
  size_t kernels = 0;                    // steps with an image
  size_t distinct_kernels = 0;           // images
  size_t reused_kernels = 0;             // ... found in a cache
  std::vector<std::string> new_kernels;  // names of the others, sorted
  std::vector<Repeats> repeats;          // nothing if the whole engine was found
  bool is_from_cache = false;            // the whole engine was found
  size_t verified_kernels = 0;           // ... and run beside their definition
  std::vector<SlowNode> slow;            // what the engine runs slowly
  std::vector<PassRunner::Timing> passes;
  NodeReports nodes;
  int64_t arena_bytes = 0;  // at the typical sizes
  int64_t arena_lower_bound = 0;
};

}  // namespace ingot::core
