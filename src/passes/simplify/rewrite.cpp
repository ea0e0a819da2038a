// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "passes/replace_all_uses.h"
#include "passes/simplify/rules.h"
#include "support/error.h"

namespace ingot::core::rewriting {
namespace {

constexpr int kMostSweeps =
    64;  // far more than rules need: each shrinks the graph or brings it closer to the canonical form

struct ParsedRule {
  Term from;
  std::optional<Term> to;
  const Rule* rule;
};
using RuleIndex = std::map<const Op*, std::vector<ParsedRule>>;

RuleIndex parse_rules(const Tables& tables) {
  RuleIndex index;
  for (const auto& table : tables) {
    for (const Rule& rule : table) {
      ParsedRule parsed{parse_term(rule.from), std::nullopt, &rule};
      if (!rule.to.empty()) parsed.to = parse_term(rule.to);
      invariant(parsed.from.op != nullptr && parsed.to.has_value() == (rule.build == nullptr),
                "a rule must start with an operator that has one result");
      index[parsed.from.op].push_back(std::move(parsed));
    }
  }
  return index;
}

bool is_used(const Graph& graph, const Node& node) {
  for (const Value* result : node.results) {
    if (!result->users.empty() || graph.is_output(result)) return true;
  }
  return false;
}

// The replacement in the shape of the node; null if the types differ.
Value* in_shape(Graph& graph, Value* value, const TensorType& type) {
  if (value->type == type) return value;
  if (value->type.dtype != type.dtype || !value->type.layout.is_row_major() || !type.layout.is_row_major())
    return nullptr;
  if (value->producer != nullptr && value->producer->op == &ops::full) {
    auto full = value->producer->attributes<ops::Full>();
    full.shape = type.shape;
    return graph.call(ops::full, {}, full);
  }
  return graph.call(ops::expand, {value}, ops::NewShape{type.shape});
}

bool apply(Graph& graph, Node* node, const ParsedRule& parsed, Rewrites& rewrites) {
  const auto matched = match(graph, parsed.from, *node);
  if (!matched || (parsed.rule->when != nullptr && !parsed.rule->when(*matched))) return false;
  if (rewrites.is_disabled(*node, parsed.rule->name)) return false;
  Graph::InsertBefore scope(graph, node);
  Value* value = parsed.to ? build(graph, *parsed.to, *matched) : parsed.rule->build(graph, *matched);
  if (value != nullptr) value = in_shape(graph, value, node->results[0]->type);
  if (value == nullptr || !rewrites.allow(*node, parsed.rule->name)) return false;
  replace_all_uses(graph, node->results[0], value);
  return true;
}

bool sweep(Graph& graph, const RuleIndex& index, Rewrites& rewrites) {
  bool changed = false;
  for (Node* node : graph.node_list()) {
    const auto rules = index.find(node->op);
    if (rules == index.end() || !is_used(graph, *node)) continue;
    for (const ParsedRule& rule : rules->second) {
      if (!apply(graph, node, rule, rewrites)) continue;
      changed = true;
      break;
    }
  }
  graph.erase_dead_nodes();
  return changed;
}

}  // namespace

Graph rewrite(Graph graph, const Tables& tables, Rewrites& rewrites) {
  const RuleIndex index = parse_rules(tables);
  for (int i = 0; i < kMostSweeps && sweep(graph, index, rewrites); ++i) {
  }
  return graph;
}

std::vector<std::string_view> names_of(const Tables& tables) {
  std::vector<std::string_view> names;
  for (const auto& table : tables) {
    for (const Rule& rule : table) names.push_back(rule.name);
  }
  return names;
}

}  // namespace ingot::core::rewriting
