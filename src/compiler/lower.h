// SPDX-License-Identifier: Apache-2.0
// Final graphs -> steps with kernel binaries: each distinct kernel is compiled once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "plan/plan.h"

namespace ingot::core {

// The kernel binaries of one build, by the canonical key of their kernels.
struct ImageTable {
  std::map<std::string, ImageId> ids;
  std::vector<std::function<Image()>> compile;  // one per kernel binary, run by compile_images
};

// Lowers every node of `graph` that needs a step, in order.
std::vector<ScheduledStep> lower_graph(const Graph& graph, const Backend& backend, const Target& target,
                                       const SymbolTable& symbols, ImageTable& images);

// Compiles on `threads` threads; calls report(done, total) after each kernel on the caller's thread. Results
// are in the order of the table.
std::vector<Image> compile_images(const ImageTable& table, int threads,
                                  const std::function<void(size_t, size_t)>& report);

}  // namespace ingot::core
