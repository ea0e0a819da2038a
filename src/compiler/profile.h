// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "compiler/options.h"
#include "ir/graph.h"

namespace ingot::core {

// Narrows the ranges of the symbols in the named inputs to the requested ones and records the typical sizes.
// UserError INGOT-U011 if a profile names an unknown input, has the wrong rank, or contradicts a static dim.
void apply_profiles(Graph& graph, std::span<const DimProfile> profiles);

}  // namespace ingot::core
