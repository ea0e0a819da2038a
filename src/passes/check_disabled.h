// SPDX-License-Identifier: Apache-2.0
// Entries of disable_passes that do not suit the pass table are errors.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace ingot::core {

// UserError INGOT-U004, which names the nearest, if there is no pass of that name.
void check_pass_name(std::span<const Pass> table, std::string_view name);

// The entries, parsed. UserError INGOT-U004 for unknown passes and rules, INGOT-U031 for nodes of a pass that
// runs for all of them or not at all.
std::vector<Disabled> checked_disabled(std::span<const Pass> table, const std::vector<std::string>& entries);

// The entries whose patterns name no node of the graph.
std::vector<std::string> entries_without_node(const Graph& graph, const std::vector<std::string>& entries);

}  // namespace ingot::core
