// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ops/axis.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "passes/hoist.h"
#include "passes/replace_all_uses.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

constexpr size_t kLinearBias = 2;

bool has_only_views_behind(const Graph& graph, const Value* value) {
  return !graph.is_output(value) && std::ranges::all_of(value->users, [](const Node* user) {
    return user->op->traits.has(Trait::kView);
  });
}

bool has_one_row(const Node& linear) {
  const Shape& shape = linear.results[0]->type.shape;
  return std::all_of(shape.begin(), shape.end() - 1, [](const Dim& dim) { return dim == Dim(1); });
}

// What has to be equal of linear layers that become one. Of one row every part is contiguous, however wide.
bool is_alike(const Node& a, const Node& b) {
  const TensorType &weight = a.operand_type(1), &other = b.operand_type(1);
  const bool same = weight == other || (has_one_row(a) && weight.dtype == other.dtype &&
                                        weight.layout == other.layout && weight.shape[1] == other.shape[1]);
  return same && a.operands[0] == b.operands[0];
}

// Copies of invariant values where the graph's insertion point is, with what they are made from.
class Copies {
 public:
  explicit Copies(Graph& graph) : graph_(graph) {}
  Value* of(const Value* value) {
    if (const auto known = copies_.find(value); known != copies_.end()) return known->second;
    std::vector<Value*> operands;
    for (const Value* operand : value->producer->operands)
      operands.push_back(operand == nullptr ? nullptr : of(operand));
    const Node* copy = graph_.add_copy(*value->producer, std::move(operands));
    for (size_t i = 0; i < copy->results.size(); ++i)
      copies_.emplace(value->producer->results[i], copy->results[i]);
    return copies_.at(value);
  }

 private:
  Graph& graph_;
  std::map<const Value*, Value*> copies_;
};

// The bias of a layer that has none, among others that have one.
Value* zeros(Graph& graph, DType dtype, const Dim& size) {
  return graph.call(ops::full, {}, ops::Full{.value = 0, .integer = 0, .dtype = dtype, .shape = {size}});
}

void merge(Graph& graph, std::span<Node* const> linears) {
  const Graph::InsertBefore scope(graph, linears[0]);
  Copies copies(graph);
  const auto joined = [&](const auto& part_of) {
    std::vector<Value*> parts;
    for (const Node* linear : linears) parts.push_back(part_of(*linear));
    return graph.call(ops::concat, std::move(parts), ops::Axis{0});
  };
  std::vector<Value*> operands = {linears[0]->operands[0],
                                  joined([&](const Node& linear) { return copies.of(linear.operands[1]); })};
  const auto has_bias = [](const Node* linear) { return linear->has_operand(kLinearBias); };
  const auto biased = std::ranges::find_if(linears, has_bias);
  if (biased != linears.end()) {
    const DType dtype = (*biased)->operand_type(kLinearBias).dtype;
    operands.push_back(joined([&](const Node& linear) {
      return has_bias(&linear) ? copies.of(linear.operands[kLinearBias])
                               : zeros(graph, dtype, linear.operand_type(1).shape[0]);
    }));
  }
  Value* all = graph.call(ops::linear, std::move(operands));
  const auto last = static_cast<int64_t>(all->type.rank()) - 1;
  Dim start = 0;
  for (Node* linear : linears) {
    const Dim end = start + linear->operand_type(1).shape[0];
    replace_all_uses(graph, linear->results[0], graph.call(ops::slice, {all}, ops::Slice{last, start, end}));
    start = end;
  }
}

}  // namespace

Graph merge_linears(Graph graph, const LinearRule& rule, Rewrites& rewrites) {
  const std::set<const Node*> invariant = invariant_nodes(graph);
  const auto fits = [&](const Node& node) {
    const auto is_invariant = [&](const Value* value) {
      return value == nullptr || invariant.contains(value->producer);
    };
    return node.op == &ops::linear && !rewrites.is_disabled(node) &&
           std::all_of(node.operands.begin() + 1, node.operands.end(), is_invariant) &&
           has_only_views_behind(graph, node.results[0]) && rule(node);
  };
  std::vector<std::vector<Node*>> groups;
  for (Node* node : graph.node_list()) {
    if (!fits(*node)) continue;
    const auto group =
        std::ranges::find_if(groups, [&](const auto& linears) { return is_alike(*linears[0], *node); });
    if (group == groups.end())
      groups.push_back({node});
    else
      group->push_back(node);
  }
  for (const std::vector<Node*>& linears : groups) {
    if (linears.size() > 1 && rewrites.allow(*linears[0])) merge(graph, linears);
  }
  graph.erase_dead_nodes();
  return graph;
}

}  // namespace ingot::core
