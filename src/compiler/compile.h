// SPDX-License-Identifier: Apache-2.0
// From a program of ATen calls to an engine's data, top to bottom. api/compiler/build.cpp reads programs, and
// prepares and writes engines.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "backends/executor.h"
#include "cache/cache.h"
#include "compiler/options.h"
#include "compiler/phases.h"
#include "compiler/target_pipeline.h"
#include "engine/engine_data.h"
#include "importers/aten/import.h"
#include "partition/partition.h"

namespace ingot::core {

// What a build did, for reports: filled as far as it got.
struct BuildReport {
  size_t kernels = 0;           // steps with an image
  size_t distinct_kernels = 0;  // images
  size_t reused_kernels = 0;    // ... found in a cache
  bool is_from_cache = false;   // the whole engine was found
  size_t verified_kernels = 0;  // ... and run beside their definition
  std::vector<SlowNode> slow;   // what the engine runs slowly
  std::vector<PassRunner::Timing> passes;
  Refusals refusals;        // of neighbours to join regions
  int64_t arena_bytes = 0;  // at the typical sizes
  int64_t arena_lower_bound = 0;
};

using DumpCallback = std::function<void(std::string_view stage, const Graph& graph)>;

// Where the kernels of a backend can run; no executor: nowhere.
struct KernelRunner {
  const Executor* executor = nullptr;
  ThreadPool* pool = nullptr;
};

struct CompileHooks {
  Phases* phases = nullptr;  // the clock of the whole build, which can also cancel it
  DumpCallback dump;
  Cache* cache = nullptr;  // of kernels; null: everything is compiled
  CacheUse cache_use;
  std::function<KernelRunner(std::string_view backend)> runner;  // what verify_kernels needs
};

// Throws UnsupportedError if a node cannot run here, UserError on bad models and options. The weights of the
// result are in the `original` form: its init program has not run (runtime/prepare.h does that).
std::shared_ptr<EngineData> compile(const aten::Program& program, const CompileOptions& options,
                                    std::span<const Backend* const> backends, const CompileHooks& hooks = {},
                                    BuildReport* report = nullptr);

// The same for a model in our own operators, created by `import`; `program` provides only names and trees.
std::shared_ptr<EngineData> compile_model(const aten::Program& program,
                                          const std::function<aten::Imported()>& import,
                                          const CompileOptions& options,
                                          std::span<const Backend* const> backends,
                                          const CompileHooks& hooks = {}, BuildReport* report = nullptr);

// The nodes of the program that an engine would run slowly, by the passes before code generation only. Throws
// like compile.
std::vector<SlowNode> find_slow(const aten::Program& program, const CompileOptions& options,
                                std::span<const Backend* const> backends);

}  // namespace ingot::core
