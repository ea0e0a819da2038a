// SPDX-License-Identifier: Apache-2.0
#include "ops/distinct.h"

#include "ops/axis.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/sort.h"

namespace ingot::core::ops {
namespace {

Value* whole(Graph& graph, const Dim& value) {
  return graph.call(full, {}, Full{.integer = value, .dtype = DType::kI64, .shape = {}});
}

Value* numbered(Graph& graph, const Dim& size) { return graph.call(iota, {}, Iota{0, 1, size, DType::kI64}); }

Value* as_integers(Graph& graph, Value* mask) { return graph.call(convert, {mask}, Convert{DType::kI64}); }

Value* in_shape(Graph& graph, Value* value, Shape shape) {
  return value->type.shape == shape ? value : graph.call(reshape, {value}, NewShape{std::move(shape)});
}

Value* taken(Graph& graph, Value* value, Value* indices) {
  return graph.call(take, {value, indices}, Axis{0});
}

}  // namespace

Value* count_of_true(Graph& graph, Value* mask) {
  const Dim count = element_count(mask->type);
  return graph.call(sum, {as_integers(graph, in_shape(graph, mask, {count}))}, Reduce{{0}, false});
}

Value* begins_of_runs(Graph& graph, Value* list) {
  // Element 0 begins a run; it has no neighbour before it.
  Value *position = numbered(graph, list->type.shape[0]), *zero = whole(graph, 0);
  Value* previous = graph.call(maximum, {graph.call(subtract, {position, whole(graph, 1)}), zero});
  Value* differs = graph.call(not_equal, {list, taken(graph, list, previous)});
  if (list->type.rank() == 2) {
    Value* found = graph.call(sum, {as_integers(graph, differs)}, Reduce{{1}, false});
    differs = graph.call(not_equal, {found, zero});
  }
  return graph.call(logical_or, {differs, graph.call(equal, {position, zero})});
}

Runs runs_at(Graph& graph, Value* list, Value* begins, Value* starts) {
  Value* begun = graph.call(cumulative_sum, {as_integers(graph, begins)}, Axis{0});
  // Where the next run starts: the list's end for the last.
  Value* end = in_shape(graph, whole(graph, list->type.shape[0]), {1});
  Value* ends = graph.call(concat, {starts, end}, Axis{0});
  ends = graph.call(slice, {ends}, Slice{0, 1, ends->type.shape[0], 1});
  return {taken(graph, list, starts), graph.call(subtract, {begun, whole(graph, 1)}),
          graph.call(subtract, {ends, starts})};
}

bool can_sort_rows(const Value* rows) {
  const auto columns = rows->type.shape[1].constant();
  return columns && *columns <= kMostSortedColumns;
}

Value* sorted_rows(Graph& graph, Value* rows) {
  const Dim size = rows->type.shape[0];
  Value* positions = numbered(graph, size);
  for (int64_t column = *rows->type.shape[1].constant() - 1; column >= 0; --column) {
    Value* keys = graph.call(slice, {rows}, Slice{1, column, column + 1, 1});
    keys = taken(graph, in_shape(graph, keys, {size}), positions);
    positions = taken(graph, positions, graph.add(sort, {keys}, Sort{0, false})->results[1]);
  }
  return positions;
}

Value* ranks_before_sorting(Graph& graph, Value* positions, Value* rank) {
  Value* zeros = graph.call(expand, {whole(graph, 0)}, NewShape{positions->type.shape});
  return graph.call(scatter, {zeros, positions, rank}, Axis{0});
}

}  // namespace ingot::core::ops
