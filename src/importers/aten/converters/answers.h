// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "importers/aten/converters/call.h"
#include "importers/aten/program/aten_graph.h"
#include "ir/graph.h"
#include "types/predicate.h"

namespace ingot::core::aten {

// The condition on sizes that a bool of the program is; nullopt if it is something else, or ambiguous between
// two of the program's graphs.
std::optional<Predicate> answer_of(const core::Graph& graph, ValueId id);

// Makes the condition the result of a call, a bool.
void give_answer(Call& call, const Predicate& condition);

// The condition that an operand of a call is, which may be a size: whether it is not 0.
std::optional<Predicate> condition_at(Call& call, size_t position);

// The condition as a bool scalar that the engine computes.
core::Value* compared(core::Graph& graph, const Predicate& condition);

}  // namespace ingot::core::aten
