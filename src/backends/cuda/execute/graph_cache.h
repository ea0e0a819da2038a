// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "backends/cuda/execute/call_list.h"
#include "backends/cuda/execute/device.h"
#include "runtime/capture_cache.h"

namespace ingot::core::cuda {

class ExecutableGraph {
 public:
  ExecutableGraph(const Driver& driver, Handle handle, std::span<const CallList::GroupUse> groups)
      : driver_(driver), handle_(handle), groups_(groups.begin(), groups.end()) {}
  ~ExecutableGraph() { driver_.destroy_executable(handle_); }
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;
  Handle handle() const { return handle_; }
  std::span<const CallList::GroupUse> groups() const { return groups_; }  // of its collectives

 private:
  const Driver& driver_;
  const Handle handle_;
  const std::vector<CallList::GroupUse> groups_;
};

// CUDA graphs of call lists.
class GraphCache {
 public:
  explicit GraphCache(Device& device);
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // The executable graph for `calls`, or null if they have to be enqueued one by one. `overlap`: as of
  // CallList::enqueue.
  Handle find(CallList& calls, bool overlap);
  // The same for calls whose graph was found before and named so; null if it has gone.
  const ExecutableGraph* find_named(std::span<const uint64_t> name) { return graphs_.find_named(name); }
  void name(std::span<const uint64_t> name) { graphs_.name(name); }  // the graph that was found last
  void forget_names() { graphs_.forget_names(); }

  // The graphs are never freed.
  void leak() { static_cast<void>(new CaptureCache<CallList, ExecutableGraph>(std::move(graphs_))); }

  void clear() { graphs_.clear(); }

  // Of its own, not kept: `marks` are the events of the list's marks.
  ExecutableGraph capture(CallList& calls, bool overlap, std::span<const Handle> marks = {});

 private:
  Device& device_;
  Handle stream_ = nullptr;  // to capture on
  CopyStream copies_;        // beside it
  CaptureCache<CallList, ExecutableGraph> graphs_;
};

}  // namespace ingot::core::cuda
