// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/graph_cache.h"

#include <utility>
#include <vector>

namespace ingot::core::cuda {

GraphCache::GraphCache(Device& device) : device_(device) {
  constexpr unsigned kNonBlocking = 1;
  const CurrentContext current = device_.enter();
  check(device_.driver(), device_.driver().create_stream(&stream_, kNonBlocking), "cuStreamCreate");
}

GraphCache::~GraphCache() {
  const CurrentContext current = device_.enter_to_free();
  clear();
  copies_.destroy(device_.driver());
  device_.driver().destroy_stream(stream_);
}

Handle GraphCache::find(CallList& calls, bool overlap, std::span<const uint64_t> name) {
  const ExecutableGraph* graph =
      graphs_.find(calls, [&](const CallList&) { return capture(calls, overlap); });
  if (graph != nullptr) {
    graphs_.name(name);
    return graph->handle();
  }
  graph = moving_.find(device_.driver(), calls,
                       [&](CallList& list) { return capture(list, overlap, {}, Nodes::kKept); });
  return graph != nullptr ? graph->handle() : nullptr;
}

ExecutableGraph GraphCache::capture(CallList& calls, bool overlap, std::span<const Handle> marks) {
  return capture(calls, overlap, marks, Nodes::kForgotten);
}

ExecutableGraph GraphCache::capture(CallList& calls, bool overlap, std::span<const Handle> marks,
                                    Nodes kept) {
  constexpr int kThreadLocal = 1;
  const Driver& driver = device_.driver();
  copies_.prepare(driver, calls.fetches());
  check(driver, driver.begin_capture(stream_, kThreadLocal), "cuStreamBeginCapture");
  Handle graph = nullptr, executable = nullptr;
  std::vector<Handle> nodes;
  try {
    calls.enqueue(driver, stream_, copies_, overlap,
                  {.marks = marks, .nodes = kept == Nodes::kKept ? &nodes : nullptr});
  } catch (...) {
    if (driver.end_capture(stream_, &graph) == 0) driver.destroy_graph(graph);
    throw;
  }
  check(driver, driver.end_capture(stream_, &graph), "cuStreamEndCapture");
  const int result = driver.instantiate(&executable, graph, 0);
  if (result != 0 || kept == Nodes::kForgotten) driver.destroy_graph(std::exchange(graph, nullptr));
  check(driver, result, "cuGraphInstantiate");
  return {driver, executable, graph, calls.groups(), std::move(nodes)};
}

}  // namespace ingot::core::cuda
