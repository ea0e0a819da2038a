// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <ranges>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/bound_symbol.h"
#include "ir/side.h"
#include "ops/attention.h"
#include "ops/axis.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/view.h"
#include "passes/passes.h"
#include "passes/replace_all_uses.h"

namespace ingot::core {
namespace {

using SymbolNames = std::set<std::string, std::less<>>;

// How a node computes a slice of its result.
struct Early {
  std::vector<std::optional<int64_t>> axes;  // of each operand: the axis to slice; none: it is needed whole
  AttributeValues values;                    // of the node
};

// The axis that `operand` broadcasts to `axis` of the result; none: it has one place there.
std::optional<int64_t> broadcast_axis(const Node& node, const Value& operand, int64_t axis) {
  const int64_t missing = static_cast<int64_t>(node.results[0]->type.rank() - operand.type.rank());
  if (axis < missing || operand.type.shape[static_cast<size_t>(axis - missing)] == Dim(1)) return {};
  return axis - missing;
}

// Operands that are broadcast to the result.
Early by_broadcast(const Node& node, int64_t axis) {
  Early early{.axes = {}, .values = node.values};
  for (const Value* operand : node.operands)
    early.axes.push_back(operand == nullptr ? std::nullopt : broadcast_axis(node, *operand, axis));
  return early;
}

// Results whose places along an axis are those of one operand along `axis`.
Early by_operand(const Node& node, size_t operand, int64_t axis) {
  Early early{.axes = std::vector<std::optional<int64_t>>(node.operands.size()), .values = node.values};
  early.axes[operand] = axis;
  return early;
}
Early by_rows(const Node& node, int64_t axis) { return by_operand(node, 0, axis); }

std::optional<Early> of_matmul(const Node& node, int64_t axis) {
  const auto rank = static_cast<int64_t>(node.results[0]->type.rank());
  const auto from_end = [&](size_t operand, int64_t dims) {
    return by_operand(node, operand, static_cast<int64_t>(node.operand_type(operand).rank()) - dims);
  };
  if (axis == rank - 1) return from_end(1, 1);
  if (axis == rank - 2) return from_end(0, 2);
  return by_broadcast(node, axis);
}

// Of rows of queries. The last of as many queries as keys sees all keys: it needs no causal mask.
std::optional<Early> of_attention(const Node& node, const ops::Slice& slice) {
  const auto rank = static_cast<int64_t>(node.results[0]->type.rank());
  if (slice.axis != rank - 2 || node.operand_type(ops::kQuery).shape.size() != node.results[0]->type.rank())
    return {};
  Early early = by_rows(node, slice.axis);
  auto attention = node.attributes<ops::Attention>();
  if (attention.causal) {
    const Dim queries = node.operand_type(ops::kQuery).shape[static_cast<size_t>(rank - 2)];
    const Shape& keys = node.operand_type(ops::kKey).shape;
    const bool is_last = slice.end == queries && slice.start + 1 == slice.end;
    if (!is_last || keys[keys.size() - 2] != queries) return {};
    attention.causal = false;
    early.values = to_values(attention);
  }
  if (node.has_operand(ops::kMask))
    early.axes[ops::kMask] = broadcast_axis(node, *node.operands[ops::kMask], slice.axis);
  return early;
}

Shape with_extent(Shape shape, int64_t axis, const Dim& extent) {
  shape[static_cast<size_t>(axis)] = extent;
  return shape;
}

// Where the axis is one of the operand, too, with as many elements in front of it.
std::optional<Early> of_reshape(const Node& node, int64_t axis, const Dim& count) {
  const Shape &from = node.operand_type(0).shape, &to = node.results[0]->type.shape;
  const auto place = static_cast<size_t>(axis);
  const Dim before = product(std::span(to).first(place)), extent = to[place];
  for (size_t own = 0; own < from.size(); ++own) {
    if (from[own] != extent || product(std::span(from).first(own)) != before) continue;
    Early early = by_rows(node, static_cast<int64_t>(own));
    early.values = to_values(ops::NewShape{with_extent(to, axis, count)});
    return early;
  }
  return {};
}

bool is_norm(const Node& node) { return node.op == &ops::layer_norm || node.op == &ops::rms_norm; }

std::optional<Early> early_form(const Node& node, const ops::Slice& slice, const Dim& count) {
  const int64_t axis = slice.axis, rank = static_cast<int64_t>(node.results[0]->type.rank());
  if (node.op == &ops::triangle || node.op->traits.has(Trait::kRandom)) return {};
  if (node.op->traits.has(Trait::kElementwise)) return by_broadcast(node, axis);
  if (node.op == &ops::linear && axis < rank - 1) return by_rows(node, axis);
  if (node.op == &ops::matmul) return of_matmul(node, axis);
  if (node.op == &ops::attention) return of_attention(node, slice);
  if (node.op == &ops::reshape) return of_reshape(node, axis, count);
  if (node.op == &ops::transpose)
    return by_rows(node, node.attributes<ops::Permutation>().order[static_cast<size_t>(axis)]);
  if (is_norm(node))
    return axis < rank - node.attributes<ops::Normalization>().axes ? std::optional(by_rows(node, axis))
                                                                    : std::nullopt;
  if (node.op == &ops::softmax || node.op == &ops::log_softmax)
    return axis != node.attributes<ops::Axis>().axis ? std::optional(by_rows(node, axis)) : std::nullopt;
  return {};
}

// Whether at least half of the places go: copies of slices cost something, too.
bool is_worth_it(const Dim& count, const Dim& extent) {
  const auto kept = count.constant(), all = extent.constant();
  return kept && (!all || 2 * *kept <= *all);
}

// Whether each sliced operand has the result's extent there: others are broadcast in ways that no rule knows.
bool fits(const Node& node, const Early& early, int64_t axis) {
  const Dim& extent = node.results[0]->type.shape[static_cast<size_t>(axis)];
  bool is_any = false;
  for (size_t i = 0; i < early.axes.size(); ++i) {
    if (!early.axes[i]) continue;
    is_any = true;
    if (node.operand_type(i).shape[static_cast<size_t>(*early.axes[i])] != extent) return false;
  }
  return is_any;
}

// Equal slices that can be computed instead of the node's result: all that is read of it. Or all but linear
// layers read, of a norm: it becomes a part of these, which the slice would prevent.
std::vector<Node*> equal_slices(const Graph& graph, const Node& node) {
  if (node.results.size() != 1 || graph.is_output(node.results[0])) return {};
  std::vector<Node*> slices;
  for (Node* user : node.results[0]->users) {
    if (is_norm(node) && user->op == &ops::linear) continue;
    if (user->op != &ops::slice || !are_on_one_side(*user, node)) return {};
    if (!slices.empty() && user->values != slices[0]->values) return {};
    slices.push_back(user);
  }
  return slices;
}

// Before which node operands can be sliced: the node itself, or the slice if a node between the two binds its
// bounds. Null: there are several such slices.
Node* place_of_slices(Node* node, std::span<Node* const> slices, const SymbolNames& bound_by_nodes) {
  const auto slice = slices[0]->attributes<ops::Slice>();
  const auto is_bound_by_node = [&](const Dim& dim) {
    return std::ranges::any_of(dim.symbols(),
                               [&](const auto& symbol) { return bound_by_nodes.contains(symbol); });
  };
  if (!is_bound_by_node(slice.start) && !is_bound_by_node(slice.end)) return node;
  return slices.size() == 1 ? slices[0] : nullptr;
}

void replace(Graph& graph, Node* node, std::span<Node* const> slices, Value* early) {
  for (Node* slice : slices) {
    replace_all_uses(graph, slice->results[0], early);
    graph.erase(slice);
  }
  if (node->results[0]->users.empty()) graph.erase(node);
}

}  // namespace

Graph slice_early(Graph graph, Rewrites& rewrites) {
  const SymbolNames bound_by_nodes = symbols_bound_by_nodes(graph);
  for (Node* node : graph.node_list() | std::views::reverse) {
    const std::vector<Node*> slices = equal_slices(graph, *node);
    if (slices.empty()) continue;
    const auto slice = slices[0]->attributes<ops::Slice>();
    const auto axis = static_cast<size_t>(slice.axis);
    const Dim &count = slices[0]->results[0]->type.shape[axis], &extent = node->results[0]->type.shape[axis];
    if (!is_worth_it(count, extent)) continue;
    const auto early = early_form(*node, slice, count);
    Node* place = place_of_slices(node, slices, bound_by_nodes);
    if (place == nullptr || !early || !fits(*node, *early, slice.axis) || !rewrites.allow(*node)) continue;
    const Graph::InsertBefore scope(graph, place);
    graph.current_source = node->source;
    graph.current_name = node->name;
    std::vector<Value*> operands = node->operands;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!early->axes[i]) continue;
      ops::Slice own = slice;
      own.axis = *early->axes[i];
      operands[i] = graph.call(ops::slice, {operands[i]}, own);
    }
    replace(graph, node, slices, graph.call(*node->op, std::move(operands), early->values));
  }
  return graph;
}

}  // namespace ingot::core
