// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "backends/cuda/execute/call_list.h"
#include "backends/cuda/execute/device.h"

namespace ingot::core::cuda {

// CUDA graphs of call lists, most recently used first. A list becomes a graph at its second use: a shape or
// an address that occurs once costs no capture.
class GraphCache {
 public:
  explicit GraphCache(Device& device);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // The executable graph for `calls`, or null if they have to be enqueued one by one.
  Handle find(CallList& calls);

 private:
  struct Graph {
    Checksum checksum;
    CallList calls;
    Handle executable;
  };
  bool is_second_use(const Checksum& checksum);
  Handle capture(CallList& calls);
  void forget_last();

  static constexpr size_t kMostGraphs = 32, kRemembered = 64;

  Device& device_;
  Handle stream_ = nullptr;  // to capture on
  std::vector<std::unique_ptr<Graph>> graphs_;
  std::vector<Checksum> seen_;  // of lists that were used once, the oldest overwritten first
  size_t next_seen_ = 0;
};

}  // namespace ingot::core::cuda
