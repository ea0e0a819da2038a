// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/graph_cache.h"

namespace ingot::core::cuda {

GraphCache::GraphCache(Device& device) : device_(device) {
  constexpr unsigned kNonBlocking = 1;
  const CurrentContext current = device_.enter();
  check(device_.driver(), device_.driver().create_stream(&stream_, kNonBlocking), "cuStreamCreate");
}

GraphCache::~GraphCache() {
  const CurrentContext current = device_.enter_to_free();
  graphs_.clear();
  copies_.destroy(device_.driver());
  device_.driver().destroy_stream(stream_);
}

Handle GraphCache::find(CallList& calls, bool overlap) {
  const ExecutableGraph* graph =
      graphs_.find(calls, [&](const CallList&) { return capture(calls, overlap); });
  return graph != nullptr ? graph->handle() : nullptr;
}

ExecutableGraph GraphCache::capture(CallList& calls, bool overlap, std::span<const Handle> marks) {
  constexpr int kThreadLocal = 1;
  const Driver& driver = device_.driver();
  copies_.prepare(driver, calls.fetches());
  check(driver, driver.begin_capture(stream_, kThreadLocal), "cuStreamBeginCapture");
  Handle graph = nullptr, executable = nullptr;
  try {
    calls.enqueue(driver, stream_, copies_, overlap, marks);
  } catch (...) {
    if (driver.end_capture(stream_, &graph) == 0) driver.destroy_graph(graph);
    throw;
  }
  check(driver, driver.end_capture(stream_, &graph), "cuStreamEndCapture");
  const int result = driver.instantiate(&executable, graph, 0);
  driver.destroy_graph(graph);
  check(driver, result, "cuGraphInstantiate");
  return {driver, executable, calls.groups()};
}

}  // namespace ingot::core::cuda
