// SPDX-License-Identifier: Apache-2.0
// Conditions on sizes during import: nodes without operands and results, which import.cpp turns into checks.
// No later stage sees them, so they are not in ops.def.
#pragma once

#include <string>

#include "ir/graph.h"
#include "types/size_check.h"

namespace ingot::core::ops {

struct SizeCondition {
  int64_t kind = 0;  // a CheckKind, or kAnswer: the value of a comparison that is not yet required
  std::string condition;
  std::string message;
  int64_t value = -1;  // kAnswer: the value of the program
  static constexpr auto fields() {
    return std::tuple{Field{"kind", &SizeCondition::kind}, Field{"condition", &SizeCondition::condition},
                      Field{"message", &SizeCondition::message}, Field{"value", &SizeCondition::value}};
  }
};
constexpr int64_t kAnswer = -1;

extern const Op size_condition;

// Requires the condition for every run; errors name the node being imported.
void add_check(Graph& graph, CheckKind kind, const Predicate& condition, std::string message = {});

// Whether a node is a condition under which the program was traced.
bool is_guard(const Node& node);

// Removes all conditions from a graph; returns the required ones, with node and source line, in order.
std::vector<SizeCheck> take_checks(Graph& graph);

}  // namespace ingot::core::ops
