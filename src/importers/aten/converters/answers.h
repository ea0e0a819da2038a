// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"
#include "types/predicate.h"

namespace ingot::core::aten {

// The condition on sizes that a bool of the program is; nullopt if it is something else, or ambiguous between
// two of the program's graphs.
std::optional<Predicate> answer_of(const core::Graph& graph, ValueId id);

}  // namespace ingot::core::aten
