// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "ir/graph.h"

namespace ingot::core {

// Says in each collective which rank may run the program: `rank` is the option of that name, "any", a rank,
// or GROUP:RANK per group, separated by commas. A trace may contain what depends on the rank that was traced,
// and does not show it: UserError INGOT-U354 if there are collectives and `rank` is empty.
void set_only_rank(Graph& graph, std::string_view rank);

}  // namespace ingot::core
