// SPDX-License-Identifier: Apache-2.0
// Operators that move elements to positions that shapes and attributes decide.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "importers/onnx/converters/converters.h"
#include "ops/concat.h"
#include "ops/view.h"
#include "types/predicate.h"

namespace ingot::core::onnx {
namespace {

// A dim of 0 stands for that of x, one of -1 for what is left.
Shape requested_shape(const Shape& from, std::vector<Dim> wanted, bool allows_zero) {
  ptrdiff_t open = -1;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] == Dim(-1)) {
      if (open >= 0) refuse_node("more than one size is -1");
      open = static_cast<ptrdiff_t>(i);
    } else if (wanted[i] == Dim(0) && !allows_zero) {
      if (i >= from.size()) refuse_node("a size of 0 beyond the dims of the input");
      wanted[i] = from[i];
    } else if (wanted[i].constant().value_or(0) < 0) {
      refuse_node("a size is negative");
    }
  }
  if (open < 0) return wanted;
  Shape others = wanted;
  others.erase(others.begin() + open);
  const std::optional<Dim> left = exact_quotient(from, others);
  if (!left) refuse("it is not known that the sizes of " + to_string(others) + " divide " + to_string(from));
  wanted[static_cast<size_t>(open)] = *left;
  return wanted;
}

void convert_reshape(Call& call) {
  Value* x = call.tensor(0);
  call.give(reshaped(call.graph(), x, requested_shape(x->type.shape, call.dims(1), call.flag("allowzero"))));
}

void convert_flatten(Call& call) {
  Value* x = call.tensor(0);
  const Shape& shape = x->type.shape;
  const int64_t given = call.attribute_integer("axis", 1), rank = static_cast<int64_t>(shape.size());
  if (given < -rank || given > rank) refuse_node("the axis is out of range");
  const std::span<const Dim> dims(shape);
  const auto axis = static_cast<size_t>(given < 0 ? given + rank : given);
  call.give(reshaped(call.graph(), x, {product(dims.first(axis)), product(dims.subspan(axis))}));
}

void convert_squeeze(Call& call) {
  Value* x = call.tensor(0);
  const Shape& shape = x->type.shape;
  const auto given = call.given_integers("axes", 1);
  std::vector<size_t> axes = call.axes(given.value_or(std::vector<int64_t>{}), shape.size());
  Shape left;
  for (size_t i = 0; i < shape.size(); ++i) {
    const bool is_listed = std::ranges::find(axes, i) != axes.end();
    if (is_listed && shape[i] != Dim(1)) refuse("it is not known that dim " + std::to_string(i) + " is 1");
    if (!given && !shape[i].is_constant()) refuse("the axes are not given, and a size is not fixed");
    const bool goes = given ? is_listed : shape[i] == Dim(1);
    if (!goes) left.push_back(shape[i]);
  }
  call.give(reshaped(call.graph(), x, std::move(left)));
}

void convert_unsqueeze(Call& call) {
  Value* x = call.tensor(0);
  const auto given = call.given_integers("axes", 1);
  if (!given) refuse_node("it has no axes");
  const size_t rank = x->type.rank() + given->size();
  const std::vector<size_t> axes = call.axes(*given, rank);
  Shape shape(rank, 1);
  size_t next = 0;
  for (size_t i = 0; i < rank; ++i) {
    if (std::ranges::find(axes, i) == axes.end()) shape[i] = x->type.shape[next++];
  }
  call.give(reshaped(call.graph(), x, std::move(shape)));
}

void convert_transpose(Call& call) {
  Value* x = call.tensor(0);
  std::vector<int64_t> order = all_axes(x->type.rank());
  std::ranges::reverse(order);
  if (call.has_attribute("perm")) order = call.attributes("perm");
  call.give(transposed(call.graph(), x, std::move(order)));
}

void convert_concat(Call& call) {
  std::vector<Value*> values = call.tensors();
  const size_t axis = call.axis(call.attribute_integer("axis", 0), values[0]->type.rank());
  call.give(concatenated(call.graph(), std::move(values), axis));
}

// The sizes of the parts: as given, or equal ones, of which the last may be smaller.
std::vector<Dim> part_sizes(Call& call, const Dim& size) {
  if (call.has_attribute("split")) {
    const std::vector<int64_t> parts = call.attributes("split");
    return {parts.begin(), parts.end()};
  }
  if (call.has(1)) return call.dims(1);
  const auto count = call.attribute_integer("num_outputs", static_cast<int64_t>(call.outputs()));
  if (count < 1 || count > static_cast<int64_t>(call.outputs()))
    refuse_node("the number of outputs is wrong");
  const Dim part = ceil_divide(size, count);
  std::vector<Dim> parts(static_cast<size_t>(count), part);
  parts.back() = size - part * Dim(count - 1);
  return parts;
}

void convert_split(Call& call) {
  Value* x = call.tensor(0);
  const size_t axis = call.axis(call.attribute_integer("axis", 0), x->type.rank());
  const Dim& size = x->type.shape[axis];
  const std::vector<Dim> parts = part_sizes(call, size);
  Dim start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Dim end = start + parts[i];
    call.give(i, sliced(call.graph(), x, axis, start, end));
    start = end;
  }
  if (start != size) refuse("it is not known that the parts add up to " + size.to_string());
}

constexpr int64_t kFarBound = int64_t{1} << 40;  // "to the end" is the largest integer as a rule

// A bound of a slice as an index from 0 on. Constants are limited to the dim, as ONNX says; a bound that is
// itself a size has to be within the dim, which is checked for each shape where it is not known.
Dim from_start(const Dim& index, const Dim& size, const SymbolTable& symbols) {
  if (const auto constant = index.constant()) {
    if (*constant >= kFarBound) return size;
    if (*constant <= -kFarBound) return 0;
    return clamped(*constant < 0 ? size + index : index, 0, size, symbols);
  }
  const DimRange range = range_of(index, symbols);
  if (range.min >= 0) return index;
  if (range.max < 0) return size + index;
  refuse("it is not known whether " + index.to_string() + " counts from the end");
}

// The same of the reversed dim: `index` counts from its last element on, and -1 stands before the first.
Dim from_last(const Dim& index, const Dim& size, const SymbolTable& symbols) {
  const auto constant = index.constant();
  if (constant && *constant <= -kFarBound) return size;
  if (constant && *constant >= kFarBound) return 0;
  Dim first = index;
  if (range_of(index, symbols).max < 0) {
    first = size + index;
  } else if (range_of(index, symbols).min < 0) {
    refuse("it is not known whether " + index.to_string() + " counts from the end");
  }
  return clamped(size - 1 - first, 0, size, symbols);
}

Value* slice_axis(Graph& graph, Value* x, size_t axis, const Dim& start, const Dim& end, int64_t step) {
  const Dim size = x->type.shape[axis];
  const auto bound = step < 0 ? from_last : from_start;
  const Dim first = bound(start, size, graph.symbols);
  Dim last = bound(end, size, graph.symbols);
  if (step < 0) x = graph.call(ops::flip, {x}, ops::Axes{{static_cast<int64_t>(axis)}});
  if (!provably_not_negative(last - first, graph.symbols)) last = maximum(first, last);
  return sliced(graph, x, axis, first, last, std::abs(step));
}

void convert_slice(Call& call) {
  Value* x = call.tensor(0);
  const size_t rank = x->type.rank();
  const std::vector<Dim> starts = call.dims(1), ends = call.dims(2);
  std::vector<int64_t> all = all_axes(starts.size());
  const std::vector<size_t> axes = call.axes(call.has(3) ? call.integers(3) : all, rank);
  const std::vector<int64_t> steps = call.has(4) ? call.integers(4) : std::vector<int64_t>(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    refuse_node("the inputs have different numbers of entries");
  for (size_t i = 0; i < axes.size(); ++i) {
    constexpr int64_t kMost = int64_t{1} << 48;
    if (steps[i] == 0) refuse_node("a step is 0");
    x = slice_axis(call.graph(), x, axes[i], starts[i], ends[i], std::clamp(steps[i], -kMost, kMost));
  }
  call.give(x);
}

void convert_expand(Call& call) {
  Value* x = call.tensor(0);
  call.give(expanded(call.graph(), x, broadcast(x->type.shape, call.dims(1))));
}

void convert_tile(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Shape from = x->type.shape;
  const std::vector<Dim> repeats = call.dims(1);
  if (repeats.size() != from.size()) refuse_node("there must be one number of repeats per dim");
  Shape apart, repeated, joined;
  for (size_t i = 0; i < from.size(); ++i) {
    apart.insert(apart.end(), {Dim(1), from[i]});
    repeated.insert(repeated.end(), {repeats[i], from[i]});
    joined.push_back(repeats[i] * from[i]);
  }
  if (joined == from) return call.give(x);
  call.give(reshaped(graph, expanded(graph, reshaped(graph, x, apart), repeated), joined));
}

std::string padding_mode(const std::string& mode) {
  if (mode == "edge") return "replicate";
  if (mode == "wrap") return "circular";
  if (mode != "constant" && mode != "reflect") refuse_node("there is no padding mode '" + mode + "'");
  return mode;
}

// Negative entries cut off.
void convert_pad(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t rank = x->type.rank();
  const std::vector<Dim> entries = call.dims(1);
  const std::vector<size_t> axes = call.axes(call.has(3) ? call.integers(3) : all_axes(rank), rank);
  if (entries.size() != 2 * axes.size()) refuse_node("there must be two entries per axis");
  ops::Pad pad{Shape(rank, 0), Shape(rank, 0), 0, padding_mode(call.attribute_text("mode", "constant"))};
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim low = entries[i], high = entries[i + axes.size()], size = x->type.shape[axes[i]];
    const bool cuts_low = range_of(low, graph.symbols).max < 0,
               cuts_high = range_of(high, graph.symbols).max < 0;
    x = sliced(graph, x, axes[i], cuts_low ? Dim(0) - low : Dim(0), cuts_high ? size + high : size);
    if (!cuts_low) pad.low[axes[i]] = low;
    if (!cuts_high) pad.high[axes[i]] = high;
  }
  if (pad.mode == "constant" && call.has(2)) pad.value = call.number(2);
  const bool does_nothing = pad.low == Shape(rank, 0) && pad.high == Shape(rank, 0);
  call.give(does_nothing ? x : graph.call(ops::pad, {x}, pad));
}

int64_t block_size(Call& call) {
  const int64_t size = call.attribute_integer("blocksize", 0);
  if (size < 1 || size > 4096 || call.rank(0) != 4)
    refuse_node("the input must have four dims, and the block a size");
  return size;
}

void convert_depth_to_space(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Dim block = block_size(call);
  const Shape& from = x->type.shape;
  const std::optional<Dim> depth = exact_quotient({from[1]}, {block, block});
  if (!depth) refuse_node("the channels are not a multiple of the block");
  const bool is_column_first = call.attribute_text("mode", "DCR") == "CRD";
  const Shape apart = is_column_first ? Shape{from[0], *depth, block, block, from[2], from[3]}
                                      : Shape{from[0], block, block, *depth, from[2], from[3]};
  x = reshaped(graph, x, apart);
  x = transposed(
      graph, x,
      is_column_first ? std::vector<int64_t>{0, 1, 4, 2, 5, 3} : std::vector<int64_t>{0, 3, 4, 1, 5, 2});
  call.give(reshaped(graph, x, {apart[0], *depth, apart[4] * block, apart[5] * block}));
}

void convert_space_to_depth(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const Dim block = block_size(call);
  const Shape from = x->type.shape;
  const std::optional<Dim> rows = exact_quotient({from[2]}, {block}),
                           columns = exact_quotient({from[3]}, {block});
  if (!rows || !columns) refuse("it is not known that the image is a multiple of the block");
  x = reshaped(graph, x, {from[0], from[1], *rows, block, *columns, block});
  x = transposed(graph, x, {0, 3, 5, 1, 2, 4});
  call.give(reshaped(graph, x, {from[0], from[1] * block * block, *rows, *columns}));
}

// In inference nothing is dropped.
void convert_dropout(Call& call) {
  const bool trains = call.has(2) && call.number(2) != 0;
  if (trains) refuse("training mode");
  Value* x = call.tensor(0);
  call.give(0, x);
  if (call.wants(1)) call.give(1, filled(call.graph(), x->type.shape, 1, DType::kBool));
}

constexpr auto kRearrange = std::to_array<Converter>({
    {"Concat", convert_concat, nullptr, 4},
    {"DepthToSpace", convert_depth_to_space},
    {"Dropout", convert_dropout, nullptr, 7},
    {"Expand", convert_expand, nullptr, 8},
    {"Flatten", convert_flatten},
    {"Pad", convert_pad, nullptr, 11},
    {"Reshape", convert_reshape, nullptr, 5},
    {"Slice", convert_slice, nullptr, 10},
    {"SpaceToDepth", convert_space_to_depth},
    {"Split", convert_split, nullptr, 2},
    {"Squeeze", convert_squeeze},
    {"Tile", convert_tile, nullptr, 6},
    {"Transpose", convert_transpose},
    {"Unsqueeze", convert_unsqueeze},
});

}  // namespace

std::span<const Converter> rearrange_converters() { return kRearrange; }

}  // namespace ingot::core::onnx
