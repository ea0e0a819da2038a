// SPDX-License-Identifier: Apache-2.0
// Operators whose results have as many elements as a run finds.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/found_sizes.h"
#include "ops/axis.h"
#include "ops/distinct.h"
#include "ops/sort.h"

namespace ingot::core::onnx {
namespace {

Value* flattened(Graph& graph, Value* x) { return reshaped(graph, x, {element_count(x->type)}); }

Value* rows_at(Graph& graph, Value* x, Value* indices, size_t axis = 0) {
  return graph.call(ops::take, {x, indices}, ops::Axis{static_cast<int64_t>(axis)});
}

void convert_nonzero(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  Value* mask =
      x->type.dtype == DType::kBool ? x : graph.call(ops::not_equal, {x, scalar(graph, 0, x->type.dtype)});
  call.give(transposed(graph, indices_of_true(call, mask), {1, 0}));
}

void convert_compress(Call& call) {
  Graph& graph = call.graph();
  Value *x = call.tensor(0), *chosen = call.tensor(1);
  if (chosen->type.dtype != DType::kBool || chosen->type.rank() != 1)
    refuse_node("its condition is not a list of bools");
  const bool has_axis = call.has_attribute("axis");
  const size_t axis = has_axis ? call.axis(call.attribute_integer("axis", 0), x->type.rank()) : 0;
  if (!has_axis) x = flattened(graph, x);
  const Dim &conditions = chosen->type.shape[0], &size = dim_of(x, axis);
  if (provably_less(size, conditions, graph.symbols))
    refuse_node(
        fmt::format("its condition has {} elements for {}", conditions.to_string(), size.to_string()));
  call.give(rows_at(graph, x, positions_of_true(call, chosen), axis));
}

// What is compared: elements, or slices along an axis as rows.
struct Compared {
  Value *sorted, *positions;   // equal ones in the order in which they were given
  Shape shape;                 // of a tensor of slices, these first; empty: elements
  std::vector<int64_t> order;  // that brings the axis to the front
};

Compared sorted_elements(Graph& graph, Value* x) {
  const Node* sorted = graph.add(ops::sort, {flattened(graph, x)}, ops::Sort{0, false});
  return {sorted->results[0], sorted->results[1], {}, {}};
}

Compared sorted_slices(Graph& graph, Value* x, size_t axis) {
  std::vector<int64_t> order = all_axes(x->type.rank());
  const auto chosen = order.begin() + static_cast<ptrdiff_t>(axis);
  std::rotate(order.begin(), chosen, chosen + 1);
  Value* slices = transposed(graph, x, order);
  Shape shape = slices->type.shape;
  Value* rows = reshaped(graph, slices, {shape[0], product(std::span<const Dim>(shape).subspan(1))});
  if (!ops::can_sort_rows(rows))
    refuse(
        fmt::format("slices of more than {} elements, or of a number that changes with the sizes of inputs",
                    ops::kMostSortedColumns));
  Value* positions = ops::sorted_rows(graph, rows);
  return {rows_at(graph, rows, positions), positions, std::move(shape), std::move(order)};
}

Value* as_slices(Graph& graph, Value* rows, const Compared& compared) {
  if (compared.order.empty()) return rows;
  Shape shape = compared.shape;
  shape[0] = rows->type.shape[0];
  std::vector<int64_t> back = compared.order;
  for (size_t i = 0; i < back.size(); ++i)
    back[static_cast<size_t>(compared.order[i])] = static_cast<int64_t>(i);
  return transposed(graph, reshaped(graph, rows, std::move(shape)), std::move(back));
}

void convert_unique(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Compared compared =
      call.has_attribute("axis")
          ? sorted_slices(graph, x, call.axis(call.attribute_integer("axis", 0), x->type.rank()))
          : sorted_elements(graph, x);
  Value* begins = ops::begins_of_runs(graph, compared.sorted);
  Value* starts = positions_of_true(call, begins);
  ops::Runs runs = ops::runs_at(graph, compared.sorted, begins, starts);
  Value* firsts = rows_at(graph, compared.positions, starts);
  if (!call.flag("sorted", true)) {  // by where they are first
    const Node* by_first = graph.add(ops::sort, {firsts}, ops::Sort{0, false});
    Value* order = by_first->results[1];
    firsts = by_first->results[0];
    Value* ranks = ops::ranks_before_sorting(graph, order, counting(graph, order->type.shape[0]));
    runs = {rows_at(graph, runs.values, order), rows_at(graph, ranks, runs.rank),
            rows_at(graph, runs.counts, order)};
  }
  call.give(0, as_slices(graph, runs.values, compared));
  call.give(1, firsts);
  call.give(2, ops::ranks_before_sorting(graph, compared.positions, runs.rank));
  call.give(3, runs.counts);
}

constexpr auto kFound = std::to_array<Converter>({
    {"Compress", convert_compress, nullptr, 9},
    {"NonZero", convert_nonzero, nullptr, 9},
    {"Unique", convert_unique, nullptr, 11},
});

}  // namespace

std::span<const Converter> found_converters() { return kFound; }

}  // namespace ingot::core::onnx
