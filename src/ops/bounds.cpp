// SPDX-License-Identifier: Apache-2.0
#include "ops/bounds.h"

#include <algorithm>
#include <unordered_set>

#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/search_sorted.h"
#include "ops/sort.h"
#include "ops/statistics.h"
#include "ops/view.h"

namespace ingot::core {
namespace ops {
namespace {

using Conditions = std::vector<Predicate>;

void slice_bounds(const Node& node, Conditions& conditions) {
  const auto slice = node.attributes<Slice>();
  const Dim& size = node.operand_type(0).shape[static_cast<size_t>(slice.axis)];
  conditions.push_back(at_most(0, slice.start));
  if (slice.end == slice.start + 1) {
    conditions.push_back(is_less(slice.start, size));
  } else {
    conditions.push_back(at_most(slice.start, slice.end));
    conditions.push_back(at_most(slice.end, size));
  }
}

void pad_bounds(const Node& node, Conditions& conditions) {
  const auto pad = node.attributes<Pad>();
  for (size_t i = 0; i < pad.low.size(); ++i) {
    const Dim& size = node.operand_type(0).shape[i];
    for (const Dim& padding : {pad.low[i], pad.high[i]}) {
      conditions.push_back(at_most(0, padding));
      if (pad.mode == "constant" || padding == Dim(0)) continue;
      const Dim wanted = pad.mode == "replicate" ? Dim(1) : pad.mode == "reflect" ? padding + 1 : padding;
      conditions.push_back(either(at_most(wanted, size), compare(Predicate::Kind::kEqual, padding, 0)));
    }
  }
}

// Operand 1 has an index along the axis for each of its elements; its other dims are positions in operand 0.
template <typename Struct>
void bounds_along(const Node& node, Conditions& conditions) {
  const Shape &x = node.operand_type(0).shape, &indices = node.operand_type(1).shape;
  for (size_t i = 0; i < x.size(); ++i) {
    if (static_cast<int64_t>(i) != node.attributes<Struct>().axis)
      conditions.push_back(at_most(indices[i], x[i]));
  }
}

// Require at least one window in each spatial dim of the result.
void window_bounds(const Node& node, Conditions& conditions) {
  const Shape& shape = node.results[0]->type.shape;
  for (size_t i = 2; i < shape.size(); ++i) conditions.push_back(at_most(1, shape[i]));
}

// Require an element in each spatial dim of the operand.
void sample_bounds(const Node& node, Conditions& conditions) {
  const Shape& shape = node.operand_type(0).shape;
  for (size_t i = 2; i < shape.size(); ++i) conditions.push_back(at_most(1, shape[i]));
}

// ... and of the result.
void resize_bounds(const Node& node, Conditions& conditions) {
  sample_bounds(node, conditions);
  window_bounds(node, conditions);
}

void top_k_bounds(const Node& node, Conditions& conditions) {
  const auto top = node.attributes<TopK>();
  conditions.push_back(at_most(top.count, node.operand_type(0).shape[static_cast<size_t>(top.axis)]));
}

void kth_value_bounds(const Node& node, Conditions& conditions) {
  const auto kth = node.attributes<KthValue>();
  conditions.push_back(at_most(kth.rank + 1, node.operand_type(0).shape[static_cast<size_t>(kth.axis)]));
}
void median_bounds(const Node& node, Conditions& conditions) {
  conditions.push_back(
      at_most(1, node.operand_type(0).shape[static_cast<size_t>(node.attributes<Axis>().axis)]));
}

// Reductions that are undefined for no elements.
void reduce_bounds(const Node& node, Conditions& conditions) {
  for (const int64_t axis : node.attributes<Reduce>().axes)
    conditions.push_back(at_most(1, node.operand_type(0).shape[static_cast<size_t>(axis)]));
}
void arg_reduce_bounds(const Node& node, Conditions& conditions) {
  const auto axis = static_cast<size_t>(node.attributes<ArgReduce>().axis);
  conditions.push_back(at_most(1, node.operand_type(0).shape[axis]));
}

// A line of a fixed size may be empty: it is never read.
void search_bounds(const Node& node, Conditions& conditions) {
  if (node.attributes<SearchSorted>().steps > 0)
    conditions.push_back(at_most(1, node.operand_type(0).shape.back()));
}

struct Rule {
  const Op* op;
  void (*add)(const Node& node, Conditions& conditions);
};
constexpr Rule kRules[] = {
    {&adaptive_average_pool, resize_bounds},
    {&adaptive_max_pool, resize_bounds},
    {&argmax, arg_reduce_bounds},
    {&argmin, arg_reduce_bounds},
    {&average_pool, window_bounds},
    {&convolution, window_bounds},
    {&convolution_transpose, window_bounds},
    {&gather, bounds_along<Axis>},
    {&grid_sample, sample_bounds},
    {&kth_value, kth_value_bounds},
    {&max_pool, window_bounds},
    {&max_pool_indices, window_bounds},
    {&median, median_bounds},
    {&pad, pad_bounds},
    {&reduce_maximum, reduce_bounds},
    {&reduce_minimum, reduce_bounds},
    {&resize_linear, resize_bounds},
    {&resize_nearest, resize_bounds},
    {&scatter, bounds_along<Axis>},
    {&scatter_add, bounds_along<Axis>},
    {&scatter_reduce, bounds_along<ScatterReduce>},
    {&search_sorted, search_bounds},
    {&slice, slice_bounds},
    {&slice_scatter, slice_bounds},
    {&top_k, top_k_bounds},
};

}  // namespace

void add_bounds(const Node& node, std::vector<Predicate>& conditions) {
  const auto rule = std::ranges::find(kRules, node.op, &Rule::op);
  if (rule != std::end(kRules)) rule->add(node, conditions);
  for (const Value* result : node.results) {
    for (const Dim& dim : result->type.shape) conditions.push_back(at_most(0, dim));
  }
}

}  // namespace ops

void complete_checks(const Graph& graph, std::vector<SizeCheck>& checks) {
  std::unordered_set<std::string> known;
  const auto is_settled = [&](const SizeCheck& check) {
    return is_proven(check.condition, graph.symbols) || !known.insert(to_string(check.condition)).second;
  };
  std::erase_if(checks, is_settled);
  for (const auto& node : graph.nodes()) {
    std::vector<Predicate> conditions;
    ops::add_bounds(*node, conditions);
    for (Predicate& condition : conditions) {
      SizeCheck check{.kind = CheckKind::kBounds,
                      .condition = std::move(condition),
                      .message = std::string(node->op->name),
                      .node = node->name,
                      .source = node->source.to_string()};
      if (!is_settled(check)) checks.push_back(std::move(check));
    }
  }
}

}  // namespace ingot::core
