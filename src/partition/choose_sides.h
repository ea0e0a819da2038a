// SPDX-License-Identifier: Apache-2.0
// Which backend of an engine runs each node.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "partition/engine_backends.h"

namespace ingot::core {

// A node that does not simply follow the device.
struct ChosenBackend {
  std::string node, op, source, backend, reason;
};
using ChosenBackends = std::vector<ChosenBackend>;

// Gives the nodes that backend_of names their sides, in branches and loops too. UserError INGOT-U002 if a
// backend is not one of the engine's. Returns the patterns that fit no node.
std::vector<std::string> set_named_sides(Graph& graph, const EngineBackends& backends);

// Gives every node a side: what the device does not support, and what a routine of the host computes, is the
// host's; the others are divided so that running them and copying between the sides takes the least time, as
// predicted. Sides that nodes already have stay. `once`: nodes whose time does not matter.
void choose_sides(Graph& graph, const EngineBackends& backends, const std::set<const Node*>& once,
                  ChosenBackends& chosen);

// Whether backend_of names the node.
bool is_named(const Node& node, const Target& target);

// The time of a copy between the host and a device, with the wait for it.
double copy_ns(const Value& value, const SymbolValues& sizes);

}  // namespace ingot::core
