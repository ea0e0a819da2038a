// SPDX-License-Identifier: Apache-2.0
// Which backend runs which node of a graph, and the reasons.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "ir/graph.h"

namespace ingot::core {

// UserError INGOT-U003 lists the available backends.
const Backend& find_backend(std::span<const Backend* const> backends, std::string_view name);

// A node that the backend runs, but slowly (see Support).
struct SlowNode {
  std::string node, op, source, reason;
  double own_ns = 0, peer_ns = 0;
};

// The slow nodes in order, except those in `once`, which run once per checkpoint. UnsupportedError INGOT-N001
// names the first node that the backend does not support, with the reason and its line in the user's model.
std::vector<SlowNode> require_support(const Graph& graph, const SymbolValues& sizes, const Backend& backend,
                                      const Target& target, const std::set<const Node*>& once);

}  // namespace ingot::core
