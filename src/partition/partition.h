// SPDX-License-Identifier: Apache-2.0
// Which backend runs which node of a graph, and why not another.
#pragma once

#include <span>

#include "backends/compile.h"
#include "ir/graph.h"

namespace ingot::core {

// UserError INGOT-U003 lists the backends that there are.
const Backend& find_backend(std::span<const Backend* const> backends, std::string_view name);

// UnsupportedError INGOT-N001 names the first node that the backend refuses, with its reason and the line of
// the user's model.
void require_support(const Graph& graph, const Backend& backend, const Target& target);

}  // namespace ingot::core
