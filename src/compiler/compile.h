// SPDX-License-Identifier: Apache-2.0
// The whole way of a model, top to bottom.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/compile.h"
#include "compiler/options.h"
#include "engine/engine_data.h"
#include "importers/aten/aten_graph.h"

namespace ingot::core {

// What a build did, for reports: filled as far as the build came.
struct BuildReport {
  struct Phase {
    std::string name;
    double seconds;
  };
  std::vector<Phase> phases;
  size_t kernels = 0;           // steps with an image
  size_t distinct_kernels = 0;  // images compiled
  int64_t arena_bytes = 0;      // at the typical sizes
  int64_t arena_lower_bound = 0;
};

// Called between pieces of work with an estimate of the remaining seconds (negative: unknown). Returning
// false cancels the build: compile throws UserError INGOT-U010.
struct Progress {
  std::string_view phase;
  size_t done, total;
  double remaining_seconds;
};
using ProgressCallback = std::function<bool(const Progress&)>;
using DumpCallback = std::function<void(std::string_view stage, const Graph& graph)>;

struct CompileHooks {
  ProgressCallback progress;
  DumpCallback dump;
};

// Throws UnsupportedError if a node cannot be run here, UserError on bad models and options. The weights of
// the result are in the `original` form: its init program has not run (runtime/prepare.h does that).
std::shared_ptr<EngineData> compile(const aten::Program& program, const CompileOptions& options,
                                    std::span<const Backend* const> backends, const CompileHooks& hooks = {},
                                    BuildReport* report = nullptr);

}  // namespace ingot::core
