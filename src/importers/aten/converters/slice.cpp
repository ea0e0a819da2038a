// SPDX-License-Identifier: Apache-2.0
// Parts of tensors, and writes to them.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/data_sizes.h"
#include "importers/aten/converters/parts.h"
#include "importers/aten/converters/terms.h"
#include "ops/size_condition.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// The sign during the trace. Without an example, that for positive numbers: -k is negative, k - 5 is not.
bool is_negative_in_example(const Dim& index, const SymbolTable& symbols) {
  SymbolValues example;
  SymbolTable positive;
  for (const std::string& symbol : index.symbols()) {
    const auto found = symbols.find(symbol);
    if (found != symbols.end() && found->second.typical) example.emplace(symbol, *found->second.typical);
    positive[symbol].range.min = 1;
  }
  const bool is_known = example.size() == positive.size();
  return is_known ? evaluate(index, example) < 0 : provably_less(index, 0, positive);
}

// An index counted from the beginning. If the ranges leave its sign open, the example decides, and runs with
// the other sign are rejected.
Dim position(Call& call, const Dim& index, const Dim& size) {
  const SymbolTable& symbols = call.graph().symbols;
  if (index.is_constant()) return from_end(index, size);
  if (provably_not_negative(index, symbols)) return index;
  if (is_proven(is_less(index, 0), symbols)) return size + index;
  const bool counts_from_end = is_negative_in_example(index, symbols);
  ops::add_check(call.graph(), CheckKind::kGuard, counts_from_end ? is_less(index, 0) : at_most(0, index));
  return counts_from_end ? size + index : index;
}

// Of one element. If calls choose the sign, each run counts from its end.
Dim element_position(Call& call, const Dim& index, const Dim& size) {
  if (!is_of_any_sign(index, call.graph().symbols)) return position(call, index, size);
  ops::add_check(call.graph(), CheckKind::kBounds, at_most(Dim(0) - size, index));
  ops::add_check(call.graph(), CheckKind::kBounds, is_less(index, size));
  return modulo(index, size);
}

// A bound of a slice counted from the beginning: as given, and clamped to [0, size] as in torch.
struct Bound {
  Dim given, inside;
};
Bound bound(Call& call, std::string_view name, const Dim& none, const Dim& size) {
  if (!call.has(name)) return {none, none};
  const Dim given = position(call, call.dim(name), size);
  if (given == Dim(kLargest)) return {size, size};
  const SymbolTable& symbols = call.graph().symbols;
  const Dim inside = smaller(given, size, symbols);
  if (provably_not_negative(inside, symbols)) return {given, inside};
  const auto from_end = (size - given).constant();  // `x[1:]` and `x[:-1]` have lengths of one form
  return {given, from_end && *from_end >= 0 ? size - minimum(size, *from_end) : maximum(inside, 0)};
}

// Whether the bounds were inside the dim during the trace: then the length is the distance of the bounds as
// given. Other sizes violate the conditions that ops/bounds.cpp adds for such a slice.
bool is_traced_inside(const Bound& start, const Bound& end, int64_t step, const Dim& traced_length) {
  return traced_length == ceil_divide(end.given - start.given, step) &&
         traced_length != ceil_divide(end.inside - start.inside, step);
}

// `traced`: the slice as recorded by the front end.
ops::Slice slice_bounds(Call& call, const core::Value* x, const TensorMeta& traced) {
  const size_t axis = call.axis("dim", x->type.rank());
  const Dim& size = extent(call, x, axis);
  const Bound start = bound(call, "start", 0, size), end = bound(call, "end", size, size);
  const int64_t step = call.integer("step");
  call.require(step > 0, "a step that is not positive");
  const bool is_known = size.is_constant() && start.given.is_constant() && end.given.is_constant();
  if (!is_known && axis < traced.shape.size() && is_traced_inside(start, end, step, traced.shape[axis]))
    return {static_cast<int64_t>(axis), start.given, end.given, step};
  if (start.inside == Dim(0) || provably_not_negative(end.inside - start.inside, call.graph().symbols))
    return {static_cast<int64_t>(axis), start.inside, end.inside, step};
  // Empty where it would end before its start.
  return {static_cast<int64_t>(axis), minimum(start.inside, end.inside), end.inside, step};
}
// A bound as a run finds it: of a number from data, which may count from the end.
core::Value* found_bound(Call& call, std::string_view name, const Dim& none, const Dim& size) {
  core::Graph& graph = call.graph();
  const Dim given = call.has(name) ? call.dim(name) : none;
  if (given == Dim(kLargest)) return size_scalar(graph, size, DType::kI64);
  const Term bound(call, size_scalar(graph, given, DType::kI64)),
      extent(call, size_scalar(graph, size, DType::kI64));
  const Term from_start = (bound < 0).choose(bound + extent, bound);
  return from_start.apply(ops::minimum, extent).apply(ops::maximum, 0).value();
}
// A slice whose length torch recorded as a size of its own, since its bounds follow from data.
void give_found_slice(Call& call, core::Value* x, size_t axis, const Dim& recorded) {
  call.require(call.integer("step") == 1, "a step, and bounds that follow from data");
  const Dim& size = extent(call, x, axis);
  const Term start(call, found_bound(call, "start", 0, size)),
      end(call, found_bound(call, "end", size, size));
  const Dim length = bind_count(call, (end - start).apply(ops::maximum, 0).value(), recorded, size).size;
  const bool is_from_start = !call.has("start") || call.dim("start") == Dim(0);
  const Dim first = is_from_start ? Dim(0) : bind_count(call, start.value(), own_symbol(call), size).size;
  call.give(sliced(call, x, axis, first, first + length));
}
// Whether a length is a symbol that says nothing of the bounds.
bool is_found(Call& call, const Dim& length, const Dim& size) {
  if (!length.is_symbol() || is_known(call.graph(), length.symbol_name())) return false;
  const auto has = [&](const Dim& dim) {
    const std::vector<std::string> symbols = dim.symbols();
    return std::ranges::find(symbols, length.symbol_name()) != symbols.end();
  };
  const auto bound_has = [&](std::string_view name) { return call.has(name) && has(call.dim(name)); };
  return !has(size) && !bound_has("start") && !bound_has("end");
}
void slice(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t axis = call.axis("dim", x->type.rank());
  const std::vector<Dim>& recorded = call.result_meta().shape;
  if (axis < recorded.size() && is_found(call, recorded[axis], extent(call, x, axis)))
    return give_found_slice(call, x, axis, recorded[axis]);
  const ops::Slice slice = slice_bounds(call, x, call.result_meta());
  call.give(sliced(call, x, static_cast<size_t>(slice.axis), slice.start, slice.end, slice.step));
}
void slice_scatter(Call& call) {
  core::Value *x = call.tensor("self"), *source = call.tensor("src");
  const ops::Slice slice = slice_bounds(call, x, call.tensor_meta("src"));
  Shape shape = x->type.shape;
  shape[static_cast<size_t>(slice.axis)] = ceil_divide(slice.end - slice.start, slice.step);
  source = expanded(call, converted(call.graph(), source, x->type.dtype), shape);
  call.give(emit(call, ops::slice_scatter, {x, source}, slice));
}
void select(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t axis = call.axis("dim", x->type.rank());
  call.give(
      selected_or_part(call, x, axis, element_position(call, call.dim("index"), extent(call, x, axis))));
}
void select_scatter(Call& call) {
  core::Value *x = call.tensor("self"), *source = call.tensor("src");
  const size_t axis = call.axis("dim", x->type.rank());
  const Dim index = element_position(call, call.dim("index"), extent(call, x, axis));
  source = unsqueezed(call, converted(call.graph(), source, x->type.dtype), axis);
  call.give(emit(call, ops::slice_scatter, {x, source},
                 ops::Slice{static_cast<int64_t>(axis), index, index + 1, 1}));
}
void narrow(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t axis = call.axis("dim", x->type.rank());
  const Dim start = position(call, call.dim("start"), extent(call, x, axis));
  call.give(sliced(call, x, axis, start, start + call.dim("length")));
}

void give_parts(Call& call, core::Value* x, size_t axis, std::span<const Dim> sizes) {
  Dim start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    call.give(i, sliced(call, x, axis, start, start + sizes[i]));
    start = start + sizes[i];
  }
}
// The number of parts is the number of results.
void split_evenly(Call& call, core::Value* x, size_t axis, const Dim& part) {
  const size_t count = call.result_count();
  if (!part.is_constant() || !extent(call, x, axis).is_constant()) {
    const Dim parts = ceil_divide(extent(call, x, axis), part);
    ops::add_check(call.graph(), CheckKind::kGuard,
                   compare(Predicate::Kind::kEqual, maximum(parts, 1), static_cast<int64_t>(count)));
  }
  std::vector<Dim> sizes(count, part);
  if (count > 0) sizes.back() = extent(call, x, axis) - part * Dim(static_cast<int64_t>(count) - 1);
  give_parts(call, x, axis, sizes);
}
void split(Call& call) {
  core::Value* x = call.tensor("self");
  split_evenly(call, x, call.axis("dim", x->type.rank()), call.dim("split_size"));
}
void split_sizes(Call& call) {
  core::Value* x = call.tensor("self");
  const std::vector<Dim> sizes = call.dims(call.has("split_sizes") ? "split_sizes" : "split_size");
  const size_t axis = call.axis("dim", x->type.rank());
  Dim total = 0;
  for (const Dim& size : sizes) total = total + size;
  if (total != extent(call, x, axis))
    ops::add_check(call.graph(), CheckKind::kBounds,
                   compare(Predicate::Kind::kEqual, total, extent(call, x, axis)), "split");
  give_parts(call, x, axis, sizes);
}
void chunk(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t axis = call.axis("dim", x->type.rank());
  split_evenly(call, x, axis, ceil_divide(extent(call, x, axis), call.integer("chunks")));
}
void unbind(Call& call) {
  core::Value* x = call.tensor("self");
  const size_t axis = call.axis("dim", x->type.rank());
  for (size_t i = 0; i < call.result_count(); ++i)
    call.give(i, selected(call, x, axis, static_cast<int64_t>(i)));
}

constexpr Converter kSliceConverters[] = {
    {"aten.chunk.default", chunk},
    {"aten.narrow.default", narrow},
    {"aten.select.int", select},
    {"aten.select_scatter.default", select_scatter},
    {"aten.slice.Tensor", slice, !kComposed, kBindsSizes},
    {"aten.slice_scatter.default", slice_scatter},
    {"aten.split.Tensor", split},
    {"aten.split.sizes", split_sizes},
    {"aten.unbind.int", unbind},
};

}  // namespace

std::span<const Converter> slice_converters() { return kSliceConverters; }

}  // namespace ingot::core::aten
