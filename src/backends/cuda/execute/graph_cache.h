// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "backends/cuda/execute/device.h"
#include "backends/cuda/execute/moving_graphs.h"
#include "runtime/capture_cache.h"

namespace ingot::core::cuda {

// CUDA graphs of call lists.
class GraphCache {
 public:
  explicit GraphCache(Device& device);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // The executable graph for `calls`, or null if they have to be enqueued one by one. `overlap`: as of
  // CallList::enqueue. `name`: by which it is found from then on, if it stays as it is.
  Handle find(CallList& calls, bool overlap, std::span<const uint64_t> name);
  // The same for calls whose graph was found before and named so; null if it has gone.
  const ExecutableGraph* find_named(std::span<const uint64_t> name) { return graphs_.find_named(name); }
  void forget_names() { graphs_.forget_names(); }

  // The graphs are never freed.
  void leak() {
    static_cast<void>(new CaptureCache<CallList, ExecutableGraph>(std::move(graphs_)));
    static_cast<void>(new MovingGraphs(std::move(moving_)));
  }

  void clear() {
    graphs_.clear();
    moving_.clear();
  }

  // Of its own, not kept: `marks` are the events of the list's marks.
  ExecutableGraph capture(CallList& calls, bool overlap, std::span<const Handle> marks = {});

 private:
  enum class Nodes : uint8_t { kForgotten, kKept };
  ExecutableGraph capture(CallList& calls, bool overlap, std::span<const Handle> marks, Nodes nodes);

  Device& device_;
  Handle stream_ = nullptr;  // to capture on
  CopyStream copies_;        // beside it
  CaptureCache<CallList, ExecutableGraph> graphs_;
  MovingGraphs moving_;  // of lists that have no graph of their own
};

}  // namespace ingot::core::cuda
