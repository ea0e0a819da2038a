// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "backends/cuda/execute/call_list.h"
#include "backends/cuda/execute/executable_graph.h"

namespace ingot::core::cuda {

// Graphs for lists that come on other addresses each time: a graph of one gets the arguments of the next,
// which takes as long as to launch the kernels whose arguments changed would.
class MovingGraphs {
 public:
  using Capture = std::function<ExecutableGraph(CallList&)>;  // with the nodes of launches

  // What does the work of `calls`, until the next call of this; null if they have to be enqueued: two lists
  // like them have to come first, and lists that are used again have graphs of their own.
  const ExecutableGraph* find(const Driver& driver, CallList& calls, const Capture& capture);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    CallList list;  // what the graph does
    uint32_t lists = 0;
    std::unique_ptr<ExecutableGraph> graph = {};
  };
  // One for each shape that calls take turns with, most recently used first.
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace ingot::core::cuda
