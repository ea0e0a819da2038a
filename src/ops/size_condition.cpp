// SPDX-License-Identifier: Apache-2.0
#include "ops/size_condition.h"

#include "ops/infer.h"

namespace ingot::core::ops {
namespace {

Types infer_nothing(const Node&) { return {}; }

}  // namespace

constinit const Op size_condition = {.name = "size_condition",
                                     .summary = "a condition on sizes, while a program is imported",
                                     .attributes = attribute_schema<SizeCondition>(),
                                     .traits = Trait::kSideEffect,
                                     .infer = infer_nothing};

void add_check(Graph& graph, CheckKind kind, const Predicate& condition, std::string message) {
  graph.add(size_condition, {},
            SizeCondition{static_cast<int64_t>(kind), to_string(condition), std::move(message), -1});
}

bool is_guard(const Node& node) {
  return node.op == &size_condition &&
         node.attributes<SizeCondition>().kind == static_cast<int64_t>(CheckKind::kGuard);
}

std::vector<SizeCheck> take_checks(Graph& graph) {
  std::vector<SizeCheck> checks;
  for (Node* node : graph.node_list()) {
    if (node->op != &size_condition) continue;
    const auto attributes = node->attributes<SizeCondition>();
    if (attributes.kind != kAnswer) {
      checks.push_back({.kind = static_cast<CheckKind>(attributes.kind),
                        .condition = parse_predicate(attributes.condition),
                        .message = attributes.message,
                        .node = node->name,
                        .source = node->source.to_string()});
    }
    graph.erase(node);
  }
  return checks;
}

}  // namespace ingot::core::ops
