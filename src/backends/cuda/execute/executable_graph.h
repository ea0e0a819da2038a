// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "backends/cuda/execute/call_list.h"

namespace ingot::core::cuda {

class ExecutableGraph {
 public:
  // Owns both. `graph`, of which `nodes` are the launches, is null if it cannot be updated.
  ExecutableGraph(const Driver& driver, Handle executable, Handle graph,
                  std::span<const CallList::GroupUse> groups, std::vector<Handle> nodes)
      : driver_(driver),
        handle_(executable),
        graph_(graph),
        groups_(groups.begin(), groups.end()),
        nodes_(std::move(nodes)) {}
  ~ExecutableGraph() {
    driver_.destroy_executable(handle_);
    if (graph_ != nullptr) driver_.destroy_graph(graph_);
  }
  ExecutableGraph(const ExecutableGraph&) = delete;
  ExecutableGraph& operator=(const ExecutableGraph&) = delete;
  Handle handle() const { return handle_; }
  std::span<const CallList::GroupUse> groups() const { return groups_; }  // of its collectives
  std::span<const Handle> nodes() const { return nodes_; }
  // Whether it can be updated.
  bool has_nodes() const { return !nodes_.empty() && std::ranges::find(nodes_, nullptr) == nodes_.end(); }

 private:
  const Driver& driver_;
  const Handle handle_, graph_;
  const std::vector<CallList::GroupUse> groups_;
  const std::vector<Handle> nodes_;
};

}  // namespace ingot::core::cuda
