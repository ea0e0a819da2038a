// SPDX-License-Identifier: Apache-2.0
// Parts of tensors, and joining, repeating and padding.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/size_condition.h"
#include "ops/view.h"

namespace ingot::core::aten {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();

// The sign during the trace; non-negative if no example is known.
bool is_negative_in_example(const Dim& index, const SymbolTable& symbols) {
  SymbolValues example;
  for (const std::string& symbol : index.symbols()) {
    const auto found = symbols.find(symbol);
    if (found == symbols.end() || !found->second.typical) return false;
    example.emplace(symbol, *found->second.typical);
  }
  return evaluate(index, example) < 0;
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
  return {given, provably_not_negative(inside, symbols) ? inside : maximum(inside, 0)};
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
  if (provably_not_negative(end.inside - start.inside, call.graph().symbols))
    return {static_cast<int64_t>(axis), start.inside, end.inside, step};
  if (!start.inside.is_constant() || !end.inside.is_constant())
    call.refuse("a slice that may be empty, depending on sizes");
  return {static_cast<int64_t>(axis), start.inside, start.inside, step};
}
void slice(Call& call) {
  core::Value* x = call.tensor("self");
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
  call.give(selected(call, x, axis, position(call, call.dim("index"), extent(call, x, axis))));
}
void select_scatter(Call& call) {
  core::Value *x = call.tensor("self"), *source = call.tensor("src");
  const size_t axis = call.axis("dim", x->type.rank());
  const Dim index = position(call, call.dim("index"), extent(call, x, axis));
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

// In their promoted dtype; torch ignores old-style empty tensors of one dim.
std::vector<core::Value*> joinable(Call& call) {
  std::vector<core::Value*> values = promoted_tensors(call);
  const auto is_empty = [&](const core::Value* value) { return value->type.shape == Shape{0}; };
  const bool mixed = !std::ranges::all_of(values, is_empty);
  if (mixed) std::erase_if(values, is_empty);
  return values;
}
void concat(Call& call) {
  std::vector<core::Value*> values = joinable(call);
  const size_t axis = call.axis("dim", values[0]->type.rank());
  call.give(concatenated(call, std::move(values), axis));
}

void flip(Call& call) {
  core::Value* x = call.tensor("self");
  if (call.integers("dims").empty()) return call.give(x);
  call.give(emit(call, ops::flip, {x}, ops::Axes{call.axes("dims", x->type.rank())}));
}
void roll(Call& call) {
  core::Value* x = call.tensor("self");
  if (element_count(x->type) == Dim(0)) return call.give(x);
  const std::vector<Dim> shifts = call.dims("shifts");
  const std::vector<int64_t> axes = call.integers("dims");
  call.require(shifts.size() == std::max<size_t>(axes.size(), 1), "another number of shifts than dims");
  if (axes.empty()) {
    core::Value* flat = reshaped(call, x, {element_count(x->type)});
    return call.give(reshaped(call, emit(call, ops::roll, {flat}, ops::Roll{0, shifts[0]}), x->type.shape));
  }
  const Shape shape = x->type.shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + static_cast<int64_t>(shape.size()) : axes[i];
    x = emit(call, ops::roll, {x}, ops::Roll{axis, shifts[i]});
  }
  call.give(x);
}

// Element i appears repeats[i] times: position j of the result shows the first element whose running count
// exceeds j. If the counts do not add up to its size, all positions are out of range, which fails the run.
void repeat_each(Call& call) {
  core::Value *x = call.tensor("self"),
              *repeats = converted(call.graph(), call.tensor("repeats"), DType::kI64);
  if (!call.has("output_size")) call.refuse("data-dependent repeats without output_size");
  if (!call.has("dim")) x = reshaped(call, x, {element_count(x->type)});
  const size_t axis = call.has("dim") ? call.axis("dim", x->type.rank()) : 0;
  const Dim size = extent(call, x, axis), total = call.dim("output_size");
  repeats = expanded(call, repeats, {size});
  core::Value* ends = emit(call, ops::cumulative_sum, {repeats}, ops::Axis{0});
  core::Value* passed = emit(call, ops::less_equal, {ends, unsqueezed(call, counting(call, total), 1)});
  core::Value* from =
      emit(call, ops::sum, {converted(call.graph(), passed, DType::kI64)}, ops::Reduce{{1}, false});
  core::Value* sum = emit(call, ops::sum, {repeats}, ops::Reduce{{0}, false});
  core::Value* fits = emit(call, ops::equal, {sum, size_scalar(call.graph(), total, DType::kI64)});
  from = emit(call, ops::select, {fits, from, size_scalar(call.graph(), size, DType::kI64)});
  call.give(emit(call, ops::take, {x, from}, ops::Axis{static_cast<int64_t>(axis)}));
}

// The part that a negative entry removes.
Dim cut(const Dim& entry) { return entry.is_constant() && *entry.constant() < 0 ? Dim(0) - entry : Dim(0); }
core::Value* without_cuts(Call& call, core::Value* x, const std::vector<Dim>& given) {
  for (size_t i = 0; i + 1 < given.size(); i += 2) {
    const size_t axis = x->type.rank() - 1 - i / 2;
    x = sliced(call, x, axis, cut(given[i]), x->type.shape[axis] - cut(given[i + 1]));
  }
  return x;
}
// torch lists padding from the last dim on: low, high, low, high ...; negative entries crop after the
// padding, but before it if the padding is circular.
void pad_by(Call& call, const std::vector<Dim>& given, const std::string& mode, double value) {
  core::Value* x = call.tensor("self");
  const size_t rank = x->type.rank();
  call.require(given.size() % 2 == 0 && given.size() / 2 <= rank, "another number of paddings than dims");
  ops::Pad pad{std::vector<Dim>(rank, 0), std::vector<Dim>(rank, 0), value, mode};
  for (size_t i = 0; i + 1 < given.size(); i += 2) {
    const size_t axis = rank - 1 - i / 2;
    pad.low[axis] = given[i] + cut(given[i]);
    pad.high[axis] = given[i + 1] + cut(given[i + 1]);
  }
  const auto nothing = [](const Dim& entry) { return entry == Dim(0); };
  const bool idle = std::ranges::all_of(pad.low, nothing) && std::ranges::all_of(pad.high, nothing);
  const bool cuts_first = mode == "circular";
  if (cuts_first) x = without_cuts(call, x, given);
  if (!idle) x = emit(call, ops::pad, {x}, pad);
  call.give(cuts_first ? x : without_cuts(call, x, given));
}
void pad_constant(Call& call) { pad_by(call, call.dims("pad"), "constant", call.number("value")); }
void pad_any(Call& call) {
  pad_by(call, call.dims("pad"), call.text("mode"), call.has("value") ? call.number("value") : 0);
}

template <bool kUpper>
void triangle(Call& call) {
  call.give(
      emit(call, ops::triangle, {call.tensor("self")}, ops::Triangle{call.integer("diagonal"), kUpper}));
}

constexpr Converter kSliceConverters[] = {
    {"aten.cat.default", concat},
    {"aten.chunk.default", chunk},
    {"aten.constant_pad_nd.default", pad_constant},
    {"aten.flip.default", flip},
    {"aten.narrow.default", narrow},
    {"aten.pad.default", pad_any},
    {"aten.repeat_interleave.self_Tensor", repeat_each},
    {"aten.roll.default", roll},
    {"aten.select.int", select},
    {"aten.select_scatter.default", select_scatter},
    {"aten.slice.Tensor", slice},
    {"aten.slice_scatter.default", slice_scatter},
    {"aten.split.Tensor", split},
    {"aten.split.sizes", split_sizes},
    {"aten.tril.default", triangle<false>},
    {"aten.triu.default", triangle<true>},
    {"aten.unbind.int", unbind},
};

}  // namespace

std::span<const Converter> slice_converters() { return kSliceConverters; }

}  // namespace ingot::core::aten
