// SPDX-License-Identifier: Apache-2.0
// The distinct elements of a list, or rows of a matrix, as nodes that front ends build. They bind the number
// of distinct ones in their own ways: between `begins_of_runs` and `runs_at`.
#pragma once

#include "ir/graph.h"

namespace ingot::core::ops {

// How many elements of a bool mask are true: i64[].
Value* count_of_true(Graph& graph, Value* mask);

// Whether each element of a list [n], or row of [n, columns], differs from the one before it: bool[n].
Value* begins_of_runs(Graph& graph, Value* list);

// Neighbours that are equal are a run.
struct Runs {
  Value* values;  // one per run
  Value* rank;    // of each element: of which run it is
  Value* counts;  // elements of each run
};
// `starts`: the indices of the true elements of `begins`.
Runs runs_at(Graph& graph, Value* list, Value* begins, Value* starts);

// The positions of rows in lexicographic order, by a stable sort per column.
constexpr int64_t kMostSortedColumns = 64;
bool can_sort_rows(const Value* rows);
Value* sorted_rows(Graph& graph, Value* rows);

// `rank` of each element, where those that were ranked are at `positions` of a list.
Value* ranks_before_sorting(Graph& graph, Value* positions, Value* rank);

}  // namespace ingot::core::ops
