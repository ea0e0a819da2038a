// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/repeats.h"
#include "compiler/target_pipeline.h"
#include "partition/partition.h"
#include "passes/pass_runner.h"

namespace ingot::core {

// What timing tactics did; nothing if all was known, or nothing could be timed.
struct TuningReport {
  size_t sites = 0;                    // distinct kernels that have several tactics
  size_t timed = 0;                    // programs that were timed
  double before_us = 0, after_us = 0;  // of the program, with the predicted tactics and the chosen ones
  std::string note;                    // why nothing was timed, where the level asks for it
};

// What immutable_weights saved: operators of constants that the build computed, and so no load or call, and
// weights (and other constants) that are one number everywhere, of which nothing is stored.
struct FoldedWeights {
  size_t operators = 0, numbers = 0;
};

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
  std::vector<std::string> without_node;  // entries of disable_passes whose nodes the model does not have
  std::vector<std::string> unused_backend_of;  // patterns that fit none of its nodes
  NodeReports nodes;
  TuningReport tuning;
  std::optional<FoldedWeights> folded;  // with immutable_weights
  int64_t arena_bytes = 0;              // at the typical sizes
  int64_t arena_lower_bound = 0;
};

}  // namespace ingot::core
