// SPDX-License-Identifier: Apache-2.0
// Conditions on sizes while a program is imported: nodes without operands and results, which import.cpp turns
// into checks. No later stage sees them, so that they are not among the operators of ops.def.
#pragma once

#include <string>

#include "ir/graph.h"
#include "types/size_check.h"

namespace ingot::core::ops {

struct SizeCondition {
  int64_t kind = 0;  // of CheckKind; kAnswer: the value of a comparison, which nothing asks for yet
  std::string condition;
  std::string message;
  int64_t value = -1;  // kAnswer: which value of the program it is
  static constexpr auto fields() {
    return std::tuple{Field{"kind", &SizeCondition::kind}, Field{"condition", &SizeCondition::condition},
                      Field{"message", &SizeCondition::message}, Field{"value", &SizeCondition::value}};
  }
};
constexpr int64_t kAnswer = -1;

extern const Op size_condition;

// Each run is refused whose sizes do not meet this; the node that is imported asks for it.
void add_check(Graph& graph, CheckKind kind, const Predicate& condition, std::string message = {});

// Takes all conditions out of a graph; those that are asked for, with node and source line, in order.
std::vector<SizeCheck> take_checks(Graph& graph);

}  // namespace ingot::core::ops
