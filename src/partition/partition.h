// SPDX-License-Identifier: Apache-2.0
// Which backend runs which node of a graph, and why not another.
#pragma once

#include <span>

#include "backends/compile.h"
#include "ir/graph.h"

namespace ingot::core {

// The backend named by the target, if it runs every node; UnsupportedError INGOT-N001 names the first node
// that it refuses, with the backend's reason and the line of the user's model.
const Backend& choose_backend(const Graph& graph, std::span<const Backend* const> backends,
                              const Target& target);

}  // namespace ingot::core
