// SPDX-License-Identifier: Apache-2.0
// What the caller of a build provides.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "cache/cache.h"
#include "compiler/phases.h"
#include "compiler/quiet.h"
#include "ir/graph.h"
#include "runtime/host.h"

namespace ingot::core {

using DumpCallback = std::function<void(std::string_view stage, const Graph& graph)>;

struct CompileHooks {
  Phases* phases = nullptr;  // the clock of the whole build, which can also cancel it
  DumpCallback dump;
  Cache* cache = nullptr;  // of kernels; null: everything is compiled
  CacheUse cache_use;
  std::function<void(const std::string& line)> log;  // of what was looked up; null: nobody wants to know
  Host* host = nullptr;                              // where kernels are verified and timed; null: nowhere
  int gpu = 0;                                       // of the host's, for targets that are GPUs
  QuietCallback quiet;                               // beside runs of others, which disturb timings
};

}  // namespace ingot::core
