// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// The values that calls of the graph take, or that it returns: of the inputs, those that may decide a result.
std::set<ValueId> values_read(const Graph& graph);

}  // namespace ingot::core::aten
