// SPDX-License-Identifier: Apache-2.0
// Final graphs -> steps with images: each distinct kernel is compiled once.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "backends/compile.h"
#include "compiler/compile.h"
#include "plan/plan.h"

namespace ingot::core {

// The images of one build, found by the canonical key of their kernels.
struct ImageTable {
  std::map<std::string, ImageId> ids;
  std::vector<std::function<Image()>> compile;  // one an image, run by compile_images
};

// Lowers every node of `graph` that needs a step, in order.
std::vector<ScheduledStep> lower_graph(const Graph& graph, const Backend& backend, const Target& target,
                                       const SymbolTable& symbols, ImageTable& images);

// Compiles on `threads` threads; calls `progress` after each. The result has the order of the table.
std::vector<Image> compile_images(const ImageTable& table, int threads, const ProgressCallback& progress);

}  // namespace ingot::core
