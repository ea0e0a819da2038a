// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "ir/in_place.h"
#include "ops/alias.h"
#include "ops/ops.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

// Nodes that run one after another and do not depend on each other. Views of their results may lie between
// them.
struct Group {
  std::vector<Node*> nodes;
  std::vector<Node*> views;
  std::set<const Value*> results;        // of all of them
  std::set<const Value*> read, written;  // written in place; what views are of
  size_t values = 0;                     // operands and results

  // Kernels have a limited number of arguments.
  bool takes(const Node& node) const {
    constexpr size_t kMostValues = 256;
    return values + node.operands.size() + node.results.size() <= kMostValues;
  }

  bool feeds(const Node& node) const {
    return std::ranges::any_of(node.operands,
                               [&](const Value* operand) { return results.contains(operand); });
  }
};

void add_accesses(const Node& node, Group& group) {
  group.values += node.operands.size() + node.results.size();
  std::set<const Value*> targets;
  for (const Value* result : node.results) {
    if (const auto update = in_place_update(*result)) targets.insert(update->operand);
  }
  AliasOffsets aliases;
  for (const Value* operand : node.operands) {
    if (operand == nullptr) continue;
    (targets.contains(operand) ? group.written : group.read).insert(aliases.root(operand));
  }
}

// Whether one writes in place what the other reads or writes: what is written would have to be copied first.
bool disturbs(const Node& node, const Group& group) {
  Group own;
  add_accesses(node, own);
  const auto meet = [](const std::set<const Value*>& a, const std::set<const Value*>& b) {
    return std::ranges::any_of(a, [&](const Value* value) { return b.contains(value); });
  };
  return meet(own.written, group.read) || meet(own.written, group.written) || meet(own.read, group.written);
}

bool has_no_step(const Node& node) {
  return node.op->traits.has(Trait::kSource) || alias_offset(node).has_value();
}

// The body of one region that computes all of the nodes.
class JoinedRegion {
 public:
  void add(const Node& node) {
    const bool is_fused = node.op->traits.has(Trait::kFused);
    if (!is_fused) return add_copy(node, node.results);
    const Graph& region = *node.graphs[0];
    for (size_t i = 0; i < region.inputs().size(); ++i)
      inside_.insert_or_assign(region.inputs()[i], input(node.operands[i]));
    for (const auto& member : region.nodes()) add_copy(*member, {});
    for (size_t i = 0; i < region.outputs.size(); ++i) add_output(region.outputs[i], node.results[i]);
  }

  Node* insert(Graph& graph, const Node& first) {
    std::vector<Graph> graphs;
    graphs.push_back(std::move(body_));
    Node* fused = graph.add_with_graphs(ops::fused, operands_, {}, std::move(graphs), types_);
    fused->source = first.source;
    fused->name = first.name;
    for (size_t i = 0; i < results_.size(); ++i) replace_all_uses(graph, results_[i], fused->results[i]);
    return fused;
  }

 private:
  Value* input(Value* outer) {
    if (outer == nullptr) return nullptr;
    const auto [entry, is_new] = inside_.try_emplace(outer, nullptr);
    if (is_new) {
      entry->second = body_.add_input(outer->name, outer->type);
      operands_.push_back(outer);
    }
    return entry->second;
  }

  void add_copy(const Node& node, const std::vector<Value*>& outputs) {
    std::vector<Value*> operands;
    for (Value* operand : node.operands) operands.push_back(input(operand));
    const Node* copy = body_.add_copy(node, std::move(operands));
    for (size_t i = 0; i < copy->results.size(); ++i)
      inside_.insert_or_assign(node.results[i], copy->results[i]);
    for (Value* output : outputs) add_output(output, output);
  }

  void add_output(const Value* inner, Value* outer) {
    body_.outputs.push_back(inside_.at(inner));
    types_.push_back(outer->type);
    results_.push_back(outer);
  }

  Graph body_{"region"};
  std::map<const Value*, Value*> inside_;
  std::vector<Value*> operands_, results_;  // of the whole graph
  std::vector<TensorType> types_;
};

// In the place of the last node; the views follow it.
void join(Graph& graph, const Group& group) {
  JoinedRegion region;
  for (const Node* node : group.nodes) region.add(*node);
  const Graph::InsertBefore scope(graph, group.nodes.back());
  region.insert(graph, *group.nodes[0]);
  for (Node* view : group.views) {
    const Node* moved = graph.add_copy(*view, view->operands);
    for (size_t i = 0; i < view->results.size(); ++i)
      replace_all_uses(graph, view->results[i], moved->results[i]);
  }
  for (auto view = group.views.rbegin(); view != group.views.rend(); ++view) graph.erase(*view);
  for (Node* node : group.nodes) graph.erase(node);
}

}  // namespace

Graph join_regions(Graph graph, const JoinRule& rule, Rewrites& rewrites) {
  Group group;
  const auto close = [&] {
    if (group.nodes.size() > 1 && rewrites.allow(*group.nodes[0])) join(graph, group);
    group = {};
  };
  for (Node* node : graph.node_list()) {
    const bool depends = group.feeds(*node), is_free = has_no_step(*node);
    const bool joins = !is_free && !rewrites.is_disabled(*node) && rule(*node);
    if (!is_free && (!joins || depends || disturbs(*node, group) || !group.takes(*node))) close();
    if (joins) add_accesses(*node, group);
    if (joins || (is_free && depends)) {
      (joins ? group.nodes : group.views).push_back(node);
      group.results.insert(node->results.begin(), node->results.end());
    }
  }
  close();
  return graph;
}

}  // namespace ingot::core
