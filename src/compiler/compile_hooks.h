// SPDX-License-Identifier: Apache-2.0
// What the caller of a build provides.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "backends/executor.h"
#include "cache/cache.h"
#include "compiler/phases.h"
#include "ir/graph.h"

namespace ingot::core {

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
  std::function<void(const std::string& line)> log;  // of what was looked up; null: nobody wants to know
  std::function<KernelRunner(std::string_view backend)> runner;  // what verify_kernels needs
};

}  // namespace ingot::core
