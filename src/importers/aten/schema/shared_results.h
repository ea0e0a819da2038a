// SPDX-License-Identifier: Apache-2.0
// Calls whose results share memory with operands although their schemas do not say so.
#pragma once

#include <utility>
#include <vector>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// (result, operand) for each result of the call that is a view of an operand, or the operand itself.
std::vector<std::pair<ValueId, ValueId>> shared_results(const Node& node);

}  // namespace ingot::core::aten
