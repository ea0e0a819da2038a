// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ir/side.h"
#include "ops/alias.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "passes/one_user.h"
#include "passes/target_passes.h"

namespace ingot::core {
namespace {

bool is_view(const Node& node) { return node.op->traits.has(Trait::kView); }

// Computes each element from elements found by index, so any layout of operands and results works.
bool is_indexed(const Node& node) {
  return node.op->traits.has(Trait::kElementwise) ||
         (is_view(node) && !node.op->traits.has(Trait::kKeepsOrder));
}

Value* in_layout(Graph& graph, Node* user, Value* value, const Layout& layout) {
  if (value->type.layout == layout) return value;
  // An elementwise producer without other users stores directly in the requested layout.
  Node* producer = value->producer;
  if (producer != nullptr && is_indexed(*producer) && has_one_user(graph, value) &&
      !alias_offset(*producer) && are_on_one_side(*producer, *user)) {
    value->type.layout = layout;
    return value;
  }
  for (Node* other : value->users) {  // an earlier user requested the same
    const bool same = other->op == &ops::relayout && other->results[0]->type.layout == layout &&
                      are_on_one_side(*other, *user);
    if (same) return other->results[0];
  }
  Graph::InsertBefore scope(graph, user);
  return graph.call(ops::relayout, {value}, ops::Relayout{layout});
}

// The permutation of the first operand of the result's rank that is not row-major.
Layout followed_layout(const Node& node) {
  for (const Value* operand : node.operands) {
    if (operand == nullptr || operand->type.rank() != node.results[0]->type.rank()) continue;
    const Layout& layout = operand->type.layout;
    if (!layout.is_row_major() && layout.is_permutation()) return layout;
  }
  return {};
}

// The layout in which a transpose's result has the bytes of its operand; nullopt for blocked operands.
std::optional<Layout> free_transposition(const Node& node) {
  const Layout& layout = node.operand_type(0).layout;
  if (!layout.is_permutation()) return std::nullopt;
  const auto order = node.attributes<ops::Permutation>().order;  // result dim i is operand dim order[i]
  std::vector<int> storage(order.size());
  for (size_t axis = 0; axis < order.size(); ++axis) {
    const int64_t dim = layout.is_row_major() ? static_cast<int64_t>(axis) : layout.axes[axis].dim;
    storage[axis] = static_cast<int>(std::ranges::find(order, dim) - order.begin());
  }
  return std::ranges::is_sorted(storage) ? Layout{} : Layout::permutation(storage);
}

// Everything row-major. Of every target: routines know no other tensors, and neither do the inputs and
// outputs of the graphs of branches and loops.
LayoutRequest row_major_request(const Node& node) {
  return {.operands = {node.operands.size(), Layout{}}, .results = {node.results.size(), Layout{}}};
}

LayoutRequest request_for(const Node& node, const LayoutRule& rule) {
  if (!node.op->routine.empty() || node.op->traits.has(Trait::kControlFlow)) return row_major_request(node);
  LayoutRequest request = rule(node);
  if (node.op->traits.has(Trait::kKeepsOrder)) request.operands.assign(1, Layout{});
  request.operands.resize(node.operands.size());
  request.results.resize(node.results.size());
  return request;
}

// Whether any layout here is, or would be, another than row-major.
bool has_choice(const Node& node, const LayoutRequest& request) {
  const auto is_other = [](const std::optional<Layout>& layout) { return layout && !layout->is_row_major(); };
  return std::ranges::any_of(request.operands, is_other) || std::ranges::any_of(request.results, is_other) ||
         std::ranges::any_of(node.operands,
                             [](const Value* operand) {
                               return operand != nullptr && !operand->type.layout.is_row_major();
                             }) ||
         node.op == &ops::transpose;
}

// Backends only agree on row-major values: they are made so where they are computed. What is computed once
// is read where it is used.
void take_row_major_from_other_side(Graph& graph, Node* node) {
  for (size_t i = 0; i < node->operands.size(); ++i) {
    Value* operand = node->operands[i];
    if (operand == nullptr || operand->type.layout.is_row_major() || operand->producer == nullptr) continue;
    if (are_on_one_side(*operand->producer, *node)) continue;
    const auto is_same = [&](const Node* user) {
      return user->op == &ops::relayout && user->side == operand->producer->side &&
             user->results[0]->type.layout.is_row_major();
    };
    const auto known = std::ranges::find_if(operand->users, is_same);
    if (known == operand->users.end()) {
      Graph::InsertBefore scope(graph, node);
      graph.current_side = operand->producer->side;
      graph.set_operand(node, i, graph.call(ops::relayout, {operand}, ops::Relayout{}));
    } else {
      graph.set_operand(node, i, (*known)->results[0]);
    }
  }
}

void assign(Graph& graph, Node* node, const LayoutRule& rule, Rewrites& rewrites) {
  take_row_major_from_other_side(graph, node);
  LayoutRequest request = request_for(*node, rule);
  const bool stays = has_choice(*node, request) && !rewrites.allow(*node);
  if (stays) request = row_major_request(*node);
  for (size_t i = 0; i < node->operands.size(); ++i) {
    Value* operand = node->operands[i];
    if (operand != nullptr && request.operands[i]) {
      graph.set_operand(node, i, in_layout(graph, node, operand, *request.operands[i]));
    }
  }
  for (size_t i = 0; i < node->results.size(); ++i) {
    if (request.results[i]) node->results[i]->type.layout = *request.results[i];
  }
  if (node->results.empty() || stays) return;
  Value* result = node->results[0];
  if (node->op->traits.has(Trait::kInPlace)) {
    // The result is the new content of operand 0's memory, whatever the layout of the written values.
    result->type.layout = node->operand_type(0).layout;
  } else if (node->op == &ops::transpose) {
    if (auto layout = free_transposition(*node)) result->type.layout = *layout;
  } else if (node->op->lower != nullptr && !node->op->traits.has(Trait::kKeepsOrder) && !request.results[0]) {
    result->type.layout = followed_layout(*node);
  }
}

// Outputs and states are row-major: others read them.
Value* in_row_major(Graph& graph, Value* value) {
  if (value->type.layout.is_row_major()) return value;
  graph.current_side = value->producer != nullptr ? value->producer->side : Side::kAny;
  return graph.call(ops::relayout, {value}, ops::Relayout{});
}

}  // namespace

Graph assign_layouts(Graph graph, const LayoutRule& rule, Rewrites& rewrites) {
  for (Node* node : graph.node_list()) {
    if (node->op != &ops::relayout) assign(graph, node, rule, rewrites);
  }
  for (Value*& output : graph.outputs) output = in_row_major(graph, output);
  for (Update& update : graph.updates) update.value = in_row_major(graph, update.value);
  graph.current_side = Side::kAny;
  return graph;
}

}  // namespace ingot::core
