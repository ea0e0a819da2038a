// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/execute/graph_cache.h"

#include <algorithm>

namespace ingot::core::cuda {

GraphCache::GraphCache(Device& device) : device_(device), seen_(kRemembered) {
  constexpr unsigned kNonBlocking = 1;
  check(device_.driver(), device_.driver().create_stream(&stream_, kNonBlocking), "cuStreamCreate");
}

GraphCache::~GraphCache() {
  device_.enter();
  while (!graphs_.empty()) forget_last();
  device_.driver().destroy_stream(stream_);
}

void GraphCache::forget_last() {
  device_.driver().destroy_executable(graphs_.back()->executable);
  graphs_.pop_back();
}

bool GraphCache::is_second_use(const Checksum& checksum) {
  if (std::ranges::find(seen_, checksum) != seen_.end()) return true;
  seen_[next_seen_++ % kRemembered] = checksum;
  return false;
}

Handle GraphCache::find(CallList& calls) {
  if (!graphs_.empty() && graphs_.front()->calls == calls) [[likely]]
    return graphs_.front()->executable;
  const Checksum checksum = calls.checksum();
  const auto found = std::ranges::find_if(
      graphs_, [&](const auto& graph) { return graph->checksum == checksum && graph->calls == calls; });
  if (found != graphs_.end()) {
    std::rotate(graphs_.begin(), found, found + 1);
    return graphs_.front()->executable;
  }
  if (!is_second_use(checksum)) return nullptr;
  if (graphs_.size() == kMostGraphs) forget_last();
  graphs_.insert(graphs_.begin(), std::make_unique<Graph>(Graph{checksum, calls, capture(calls)}));
  return graphs_.front()->executable;
}

Handle GraphCache::capture(CallList& calls) {
  constexpr int kThreadLocal = 1;
  const Driver& driver = device_.driver();
  check(driver, driver.begin_capture(stream_, kThreadLocal), "cuStreamBeginCapture");
  Handle graph = nullptr, executable = nullptr;
  try {
    calls.enqueue(driver, stream_, device_.overlaps_kernels());
  } catch (...) {
    if (driver.end_capture(stream_, &graph) == 0) driver.destroy_graph(graph);
    throw;
  }
  check(driver, driver.end_capture(stream_, &graph), "cuStreamEndCapture");
  const int result = driver.instantiate(&executable, graph, 0);
  driver.destroy_graph(graph);
  check(driver, result, "cuGraphInstantiate");
  return executable;
}

}  // namespace ingot::core::cuda
