// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "importers/aten/schema/aliases.h"

namespace ingot::core::aten {

// The values on which results depend, and calls for their effect: those that write into an operand, those
// without results (assertions), and those that have no schema (branches, operators of others).
std::set<ValueId> values_needed(const Graph& graph, const Aliases& aliases);

}  // namespace ingot::core::aten
