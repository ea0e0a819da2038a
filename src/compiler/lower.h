// SPDX-License-Identifier: Apache-2.0
// Final graphs -> steps with kernel binaries: each distinct kernel is compiled once.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "compiler/lone_node.h"
#include "plan/plan.h"

namespace ingot::core {

// What a backend made of a node. The values of the steps are those of `lone`.
struct LoweredNode {
  LoneNode lone;
  std::vector<LoweredStep> steps;
};

// What equal nodes of one build share: each is lowered once, and each distinct kernel is one image.
struct ImageTable {
  std::map<std::string, LoweredNode> nodes;     // by LoneNode::text
  std::map<std::string, ImageId> ids;           // by LoweredStep::kernel_key
  std::vector<std::function<Image()>> compile;  // one per image, run by compile_images
};

// Lowers every node of `graph` that needs a step, in order.
std::vector<ScheduledStep> lower_graph(const Graph& graph, const Backend& backend, const Target& target,
                                       const SymbolTable& symbols, ImageTable& images);

// Compiles on `threads` threads; calls report(done, total) after each kernel on the caller's thread. Results
// are in the order of the table.
std::vector<Image> compile_images(const ImageTable& table, int threads,
                                  const std::function<void(size_t, size_t)>& report);

}  // namespace ingot::core
