// SPDX-License-Identifier: Apache-2.0
// Whether the backends of an engine run the nodes of a graph, and the reasons.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "partition/engine_backends.h"

namespace ingot::core {

// A node that its backend runs, but slowly (see Support).
struct SlowNode {
  std::string node, op, source, reason;
  double own_ns = 0, peer_ns = 0;
};

// The slow nodes in order, except those in `once`, which run once per checkpoint. UnsupportedError INGOT-N001
// names the first node that its backend does not support, with the reason and its line in the user's model.
std::vector<SlowNode> require_support(const Graph& graph, const SymbolValues& sizes,
                                      const EngineBackends& backends, const std::set<const Node*>& once);

}  // namespace ingot::core
