// SPDX-License-Identifier: Apache-2.0
// Results whose sizes follow from data: a size is computed, bound to its symbol, and then used like any
// other.
#include "importers/aten/converters/data_sizes.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "importers/aten/converters/answers.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ir/bound_symbol.h"
#include "ops/assertion.h"
#include "ops/axis.h"
#include "ops/data_sizes.h"
#include "ops/distinct.h"
#include "ops/index.h"
#include "ops/size_condition.h"
#include "ops/sort.h"
#include "types/linear_dim.h"

namespace ingot::core::aten {
namespace {

core::Value* as_mask(Call& call, core::Value* x) {
  return x->type.dtype == DType::kBool
             ? x
             : emit(call, ops::not_equal, {x, scalar(call.graph(), 0, x->type.dtype)});
}

// A list of indices: i64[count].
core::Value* positions_of_true(Call& call, core::Value* flat_mask, const Dim& recorded) {
  return selected(call, indices_of_true(call, flat_mask, recorded), 1, 0);
}

void nonzero(Call& call) {
  core::Value* mask = as_mask(call, call.tensor("self"));
  const Dim size = recorded_size(call);
  if (mask->type.rank() > 0) return call.give(indices_of_true(call, mask, size));
  indices_of_true(call, reshaped(call, mask, {1}), size);  // binds the size
  call.give(filled(call, {size, 0}, 0, DType::kI64));
}

void nonzero_columns(Call& call) {
  core::Value* x = call.tensor(call.has("self") ? "self" : "condition");
  if (x->type.rank() == 0) x = reshaped(call, x, {1});
  core::Value* indices = indices_of_true(call, as_mask(call, x), recorded_size(call));
  for (size_t i = 0; i < x->type.rank(); ++i)
    call.give(i, selected(call, indices, 1, static_cast<int64_t>(i)));
}

void masked_select(Call& call) {
  core::Value *x = call.tensor("self"), *mask = call.tensor("mask");
  const Shape shape = emit(call, ops::logical_and, {as_mask(call, x), mask})->type.shape;  // broadcast; dead
  x = flattened(call, expanded(call, x, shape));
  mask = flattened(call, expanded(call, mask, shape));
  call.give(emit(call, ops::take, {x, positions_of_true(call, mask, recorded_size(call))}, ops::Axis{0}));
}

ops::Runs runs_of(Call& call, core::Value* list, const Dim& recorded) {
  core::Value* begins = ops::begins_of_runs(call.graph(), list);
  return ops::runs_at(call.graph(), list, begins, positions_of_true(call, begins, recorded));
}

// Results that the caller did not ask for are empty: int64, though torch 2.11 records the dtype of `self` for
// them.
void give_or_empty(Call& call, size_t index, bool is_wanted, core::Value* value) {
  if (index >= call.result_count() || !call.node().outputs[index]) return;
  call.give(index, is_wanted ? value : filled(call, {0}, 0, DType::kI64));
}

// Slices along a dim as rows: [slices, elements of each].
struct Slices {
  core::Value* rows;
  Shape shape;                 // of the tensor, with that dim first
  std::vector<int64_t> order;  // brings the dim to the front
  Dim recorded;                // how many distinct ones there are
};
Slices slices_of(Call& call, core::Value* x) {
  const size_t axis = call.axis("dim", x->type.rank());
  call.require(x->type.rank() > 0, "slices of a scalar");
  // For negative dims torch records a shape of another rank.
  call.require(call.result_meta(0).shape.size() == x->type.rank(), "slices along a negative dim");
  Slices slices;
  slices.order = all_axes(x->type.rank());
  std::rotate(slices.order.begin(), slices.order.begin() + static_cast<ptrdiff_t>(axis),
              slices.order.begin() + static_cast<ptrdiff_t>(axis) + 1);
  core::Value* moved = transposed(call, x, slices.order);
  slices.shape = moved->type.shape;
  const Dim columns = product(std::vector<Dim>(slices.shape.begin() + 1, slices.shape.end()));
  slices.rows = reshaped(call, moved, {slices.shape[0], columns});
  slices.recorded = recorded_size(call, axis);
  return slices;
}
void give_slices(Call& call, const Slices& slices, const ops::Runs& runs, core::Value* inverse) {
  Shape shape = slices.shape;
  shape[0] = runs.values->type.shape[0];
  call.give(0, transposed(call, reshaped(call, runs.values, shape), inverse_order(slices.order)));
  const Shape none{Dim(0)};
  for (const auto& [index, value] : {std::pair{size_t{1}, inverse}, std::pair{size_t{2}, runs.counts}}) {
    if (index < call.result_count() && call.node().outputs[index])
      give_or_empty(call, index, call.result_meta(index).shape != none, value);
  }
}

void unique_consecutive(Call& call) {
  core::Value* x = call.tensor("self");
  if (call.has("dim")) {
    const Slices slices = slices_of(call, x);
    const ops::Runs runs = runs_of(call, slices.rows, slices.recorded);
    return give_slices(call, slices, runs, runs.rank);
  }
  const ops::Runs runs = runs_of(call, flattened(call, x), recorded_size(call));
  call.give(0, runs.values);
  give_or_empty(call, 1, call.flag("return_inverse"), reshaped(call, runs.rank, x->type.shape));
  give_or_empty(call, 2, call.flag("return_counts"), runs.counts);
}

// Sorts, whatever `sorted` is: torch does, too.
void unique(Call& call) {
  core::Value* x = call.tensor("self");
  const bool counts = call.has("return_counts") && call.flag("return_counts");
  const core::Node* sorted = call.graph().add(ops::sort, {flattened(call, x)}, ops::Sort{0, false});
  const ops::Runs runs = runs_of(call, sorted->results[0], recorded_size(call));
  call.give(0, runs.values);
  core::Value* inverse = ops::ranks_before_sorting(call.graph(), sorted->results[1], runs.rank);
  give_or_empty(call, 1, call.flag("return_inverse"), reshaped(call, inverse, x->type.shape));
  give_or_empty(call, 2, counts, runs.counts);
}

void unique_dim(Call& call) {
  const Slices slices = slices_of(call, call.tensor("self"));
  if (!ops::can_sort_rows(slices.rows))
    call.refuse(fmt::format("slices of more than {} elements, or of a number that is not known",
                            ops::kMostSortedColumns));
  core::Value* positions = ops::sorted_rows(call.graph(), slices.rows);
  core::Value* sorted = emit(call, ops::take, {slices.rows, positions}, ops::Axis{0});
  const ops::Runs runs = runs_of(call, sorted, slices.recorded);
  give_slices(call, slices, runs, ops::ranks_before_sorting(call.graph(), positions, runs.rank));
}

void bool_item(Call& call, core::Value* x) {
  call.require(element_count(x->type) == Dim(1), "a number from a tensor of several elements");
  give_computed_answer(call, reshaped(call, x, {}));
}

// A number in a tensor as an integer, which may be a size, or as a float.
void item(Call& call) {
  core::Value* x = call.tensor("self");
  const auto& outputs = call.node().outputs;
  if (outputs.empty() || !outputs[0]) return;
  if (x->type.dtype == DType::kBool) return bool_item(call, x);
  if (is_floating(x->type.dtype)) {
    call.require(element_count(x->type) == Dim(1), "a number from a tensor of several elements");
    return call.give(RealOfSizes{converted(call.graph(), reshaped(call, x, {}), DType::kF64)});
  }
  if (!is_integer(x->type.dtype)) return;
  const std::optional<Dim>& recorded = call.scope().value(*outputs[0]).integer;
  if (!recorded) return;
  call.require(element_count(x->type) == Dim(1), "a number from a tensor of several elements");
  core::Value* number = converted(call.graph(), reshaped(call, x, {}), DType::kI64);
  if (recorded->is_symbol() && !call.graph().symbols.contains(recorded->symbol_name())) return;
  const Dim limit = recorded->is_symbol() ? largest_number(call.scope(), recorded->symbol_name()) : INT64_MAX;
  call.give(bind_count(call, number, *recorded, limit).size);
}

// One of two sizes, neither of them negative.
void chosen_size(Call& call) {
  const auto condition = condition_at(call, 0);
  const auto then = call.size_at(1), otherwise = call.size_at(2);
  const auto& outputs = call.node().outputs;
  if (!condition || !then || !otherwise || outputs.empty() || !outputs[0]) return;
  core::Graph& graph = call.graph();
  if (!provably_not_negative(*then, graph.symbols) || !provably_not_negative(*otherwise, graph.symbols))
    return;
  core::Value* number = emit(call, ops::select,
                             {compared(graph, *condition), size_scalar(graph, *then, DType::kI64),
                              size_scalar(graph, *otherwise, DType::kI64)});
  const std::optional<Dim>& recorded = call.scope().value(*outputs[0]).integer;
  call.give(
      bind_count(call, number, recorded ? *recorded : own_symbol(call), maximum(*then, *otherwise)).size);
}

// A size of which each rank has its own: `ranks` in each of the groups.
void size_of_rank(Call& call) {
  RankSizes table{.axes = {}, .sizes = call.integers("sizes")};
  const std::vector<std::string> groups = call.texts("group_names");
  const std::vector<int64_t> ranks = call.integers("ranks");
  call.require(!groups.empty() && groups.size() == ranks.size(),
               "groups that are not as many as their ranks");
  size_t entries = 1;
  for (size_t i = 0; i < groups.size(); ++i) {
    call.require(ranks[i] > 0, "a group without ranks");
    table.axes.push_back({groups[i], ranks[i]});
    entries *= static_cast<size_t>(ranks[i]);
  }
  call.require(table.sizes.size() == entries && std::ranges::min(table.sizes) >= 0,
               "sizes that are not one per rank");
  const auto& outputs = call.node().outputs;
  if (outputs.empty() || !outputs[0]) return;
  const std::optional<Dim>& recorded = call.scope().value(*outputs[0]).integer;
  const DimRange range{std::ranges::min(table.sizes), std::ranges::max(table.sizes)};
  if (recorded == Dim(range.min) && range.min == range.max) return call.give(*recorded);
  call.require(recorded && recorded->is_symbol(), "a size without a symbol");
  call.graph().symbols[recorded->symbol_name()] = {
      .range = range, .typical = range.max, .upper_bound = {}, .by_rank = std::move(table)};
  call.give(*recorded);
}

constexpr Converter kDataSizesConverters[] = {
    {"aten._local_scalar_dense.default", item, !kComposed, kBindsSizes},
    {"aten._unique.default", unique, !kComposed, kBindsSizes},
    {"aten._unique2.default", unique, !kComposed, kBindsSizes},
    {"aten.argwhere.default", nonzero, !kComposed, kBindsSizes},
    {"aten.item.default", item, !kComposed, kBindsSizes},
    {"aten.masked_select.default", masked_select, !kComposed, kBindsSizes},
    {"aten.nonzero.default", nonzero, !kComposed, kBindsSizes},
    {"aten.nonzero_numpy.default", nonzero_columns, !kComposed, kBindsSizes},
    {"aten.unique_consecutive.default", unique_consecutive, !kComposed, kBindsSizes},
    {"aten.unique_dim.default", unique_dim, !kComposed, kBindsSizes},
    {"aten.unique_dim_consecutive.default", unique_consecutive, !kComposed, kBindsSizes},
    {"aten.where.default", nonzero_columns, !kComposed, kBindsSizes},
    {"ingot.size_of_rank.default", size_of_rank, !kComposed, kBindsSizes},
    {"torch.sym_ite", chosen_size, !kComposed, kBindsSizes},
};

}  // namespace

bool is_known(const core::Graph& graph, const std::string& symbol) {
  const auto has = [&](const core::Value* value) {
    return std::ranges::any_of(value->type.shape, [&](const Dim& dim) {
      const auto linear = linear_dim(dim);
      return linear && linear->symbol == symbol;
    });
  };
  if (std::ranges::any_of(graph.inputs(), has)) return true;
  return std::ranges::any_of(graph.nodes(), [&](const auto& node) {
    const bool is_source = node->op->traits.has(Trait::kSource);
    return bound_symbol(*node) == symbol || (is_source && std::ranges::any_of(node->results, has));
  });
}

Dim own_symbol(Call& call) {
  std::string name = "n" + std::to_string(*call.node().outputs[0]);
  while (call.graph().symbols.contains(name)) name += '_';
  return Dim::symbol(name);
}

const Dim& recorded_size(Call& call, size_t axis) {
  const std::vector<Dim>& shape = call.result_meta(0).shape;
  call.require(axis < shape.size(), "a result without dims");
  return shape[axis];
}

Dim largest_number(const Scope& scope, const std::string& symbol) {
  return scope.decides_sizes(symbol) ? kMostFound : INT64_MAX;
}

void give_computed_answer(Call& call, core::Value* is_true) {
  const Dim size = own_symbol(call);
  bind_count(call, converted(call.graph(), is_true, DType::kI64), size, 1);
  give_answer(call, compare(Predicate::Kind::kEqual, size, 1));
}

void give_computed_integer(Call& call, core::Value* integer) {
  const auto& outputs = call.node().outputs;
  if (outputs.empty() || !outputs[0]) return;
  core::Graph& graph = call.graph();
  const std::optional<Dim>& recorded = call.scope().value(*outputs[0]).integer;
  if (recorded && (!recorded->is_symbol() || is_known(graph, recorded->symbol_name()))) return;
  const Dim symbol = recorded ? *recorded : own_symbol(call);
  if (!recorded) graph.symbols[symbol.symbol_name()].range = {INT64_MIN, INT64_MAX};
  const Dim limit = largest_number(call.scope(), symbol.symbol_name());
  call.give(bind_count(call, integer, symbol, limit).size);
}

core::Value* flattened(Call& call, core::Value* x) { return reshaped(call, x, {element_count(x->type)}); }

DataCount bind_count(Call& call, core::Value* count, const Dim& recorded, const Dim& limit) {
  core::Graph& graph = call.graph();
  if (recorded.is_symbol() && !is_known(graph, recorded.symbol_name())) {
    SymbolInfo& symbol = graph.symbols[recorded.symbol_name()];
    // What torch knows of the size is what the program asserts of it: a run has to check that.
    const DimRange asserted = symbol.range;
    symbol = {.range = {.min = asserted.min < 0 ? INT64_MIN : 0}, .typical = {}, .upper_bound = limit};
    const bool has_lower_end = asserted.min > 0 || (asserted.min < 0 && asserted.min > -INT64_MAX);
    if (has_lower_end) ops::add_check(graph, CheckKind::kAssertion, at_most(asserted.min, recorded));
    if (asserted.max < INT64_MAX)
      ops::add_check(graph, CheckKind::kAssertion, at_most(recorded, asserted.max));
    return {emit(call, ops::bind_size, {count}, ops::DataSize{recorded}), recorded};
  }
  core::Value* expected = size_scalar(graph, recorded, DType::kI64);
  graph.add(ops::assert_true, {emit(call, ops::equal, {count, expected})},
            ops::Assertion{"a number that follows from data must be " + recorded.to_string()});
  return {count, recorded};
}

core::Value* indices_of_true(Call& call, core::Value* mask, const Dim& recorded) {
  const DataCount found =
      bind_count(call, ops::count_of_true(call.graph(), mask), recorded, element_count(mask->type));
  return emit(call, ops::nonzero, {mask, found.count}, ops::DataSize{found.size});
}

std::span<const Converter> data_sizes_converters() { return kDataSizesConverters; }

}  // namespace ingot::core::aten
