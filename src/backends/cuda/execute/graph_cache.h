// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backends/cuda/execute/call_list.h"
#include "backends/cuda/execute/device.h"
#include "runtime/capture_cache.h"

namespace ingot::core::cuda {

class ExecutableGraph {
 public:
  ExecutableGraph(const Driver& driver, Handle handle) : driver_(driver), handle_(handle) {}
  ~ExecutableGraph() { driver_.destroy_executable(handle_); }
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;
  Handle handle() const { return handle_; }

 private:
  const Driver& driver_;
  const Handle handle_;
};

// CUDA graphs of call lists.
class GraphCache {
 public:
  explicit GraphCache(Device& device);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // The executable graph for `calls`, or null if they have to be enqueued one by one.
  Handle find(CallList& calls);

 private:
  ExecutableGraph capture(CallList& calls);

  Device& device_;
  Handle stream_ = nullptr;  // to capture on
  CaptureCache<CallList, ExecutableGraph> graphs_;
};

}  // namespace ingot::core::cuda
