// SPDX-License-Identifier: Apache-2.0
// Reads and writes at several indices in data, and by masks.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/data_sizes.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/index.h"
#include "ops/indexing.h"
#include "ops/sort.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

// The size that the program recorded for the selected elements of masks, where they are indices: the last of
// the dims to which all indices broadcast.
Dim recorded_count(Call& call, const std::vector<core::Value*>& given) {
  size_t rank = 1, axis = 0;
  std::vector<int64_t> axes;
  for (const core::Value* index : given) {
    const bool is_mask = index != nullptr && index->type.dtype == DType::kBool;
    const size_t taken = is_mask ? index->type.rank() : 1;
    for (size_t i = 0; index != nullptr && i < taken; ++i) axes.push_back(static_cast<int64_t>(axis + i));
    if (index != nullptr && !is_mask) rank = std::max(rank, index->type.rank());
    axis += taken;
  }
  const std::vector<Dim>& shape = call.result_meta().shape;
  const size_t position = ops::indices_position(axes) + rank - 1;
  call.require(position < shape.size(), "a mask as index");
  return shape[position];
}

// The index tensors that are present, and their axes.
struct Indices {
  std::vector<core::Value*> values;
  ops::IndexedAxes axes;
};
// A mask counts as one index per dim: the positions of its true elements. `selects`: the call's result has
// one entry per position.
Indices indices_of(Call& call, bool selects) {
  Indices result;
  const std::vector<core::Value*> given = call.optional_tensors("indices");
  int64_t axis = 0;
  for (core::Value* index : given) {
    const DType dtype = index == nullptr ? DType::kI64 : index->type.dtype;
    if (dtype == DType::kU8 || (dtype == DType::kBool && (!selects || index->type.rank() == 0)))
      call.refuse("a mask as index: the size of the result depends on its data");
    if (dtype == DType::kBool) {
      core::Value* positions = indices_of_true(call, index, recorded_count(call, given));
      for (size_t i = 0; i < index->type.rank(); ++i) {
        result.values.push_back(selected(call, positions, 1, static_cast<int64_t>(i)));
        result.axes.axes.push_back(axis++);
      }
      continue;
    }
    if (index != nullptr) {
      result.values.push_back(dtype == DType::kI32 ? index : converted(call.graph(), index, DType::kI64));
      result.axes.axes.push_back(axis);
    }
    ++axis;
  }
  const bool mixed = std::ranges::any_of(
      result.values, [&](core::Value* value) { return value->type.dtype != result.values[0]->type.dtype; });
  for (core::Value*& value : result.values) {
    if (mixed) value = converted(call.graph(), value, DType::kI64);
  }
  return result;
}
// A single mask: its dims become one, of which elements are taken.
bool take_by_mask(Call& call, core::Value* x) {
  const std::vector<core::Value*> given = call.optional_tensors("indices");
  const auto first = std::ranges::find_if(given, [](const core::Value* index) { return index != nullptr; });
  const auto present =
      std::ranges::count_if(given, [](const core::Value* index) { return index != nullptr; });
  if (present != 1 || (*first)->type.dtype != DType::kBool || (*first)->type.rank() == 0) return false;
  const auto axis = first - given.begin(), rank = static_cast<ptrdiff_t>((*first)->type.rank());
  call.require(axis + rank <= static_cast<ptrdiff_t>(x->type.rank()), "a mask of more dims than the tensor");
  const Dim count = element_count((*first)->type);
  Shape shape = x->type.shape;
  shape.erase(shape.begin() + axis, shape.begin() + axis + rank);
  shape.insert(shape.begin() + axis, count);
  core::Value* mask = reshaped(call, *first, {count});
  core::Value* positions = selected(call, indices_of_true(call, mask, recorded_count(call, given)), 1, 0);
  call.give(emit(call, ops::take, {reshaped(call, x, shape), positions}, ops::Axis{axis}));
  return true;
}
void index(Call& call) {
  core::Value* x = call.tensor("self");
  if (take_by_mask(call, x)) return;
  Indices indices = indices_of(call, true);
  if (indices.values.empty()) return call.give(x);
  indices.values.insert(indices.values.begin(), x);
  call.give(emit(call, ops::index, std::move(indices.values), indices.axes));
}

// A bool mask over the first dims is a select, not an index. The source has no dims of the mask, or one of
// size 1, or one element per true element.
bool put_by_mask(Call& call, core::Value* x, core::Value* source) {
  const std::vector<core::Value*> given = call.optional_tensors("indices");
  if (given.size() != 1 || given[0] == nullptr || given[0]->type.dtype != DType::kBool) return false;
  core::Value* mask = given[0];
  const size_t masked = mask->type.rank(), rest = x->type.rank() - masked;
  call.require(masked <= x->type.rank(), "a mask of more dims than the tensor");
  if (source->type.rank() > rest && source->type.shape[0] != Dim(1)) {
    if (masked == 0) return false;
    if (source->type.shape[0] == Dim(0)) {
      call.give(x);
      return true;
    }
    source = emit(call, ops::take, {source, rank_among_true(call, mask)}, ops::Axis{0});
    Shape shape = mask->type.shape;
    shape.insert(shape.end(), source->type.shape.begin() + 1, source->type.shape.end());
    source = reshaped(call, source, shape);
  } else if (source->type.rank() > rest) {
    source = without_axes(call, source, {0});
  }
  if (call.flag("accumulate"))
    source = emit(call, x->type.dtype == DType::kBool ? ops::logical_or : ops::add, {x, source});
  Shape shape = mask->type.shape;
  while (shape.size() < x->type.rank()) shape.push_back(1);
  call.give(emit(call, ops::select, {reshaped(call, mask, shape), source, x}));
  return true;
}
// A sum of truth values is whether any is true: the largest of their bytes.
core::Value* sum_at(Call& call, core::Value* x, core::Value* places, core::Value* source) {
  if (x->type.dtype != DType::kBool) return emit(call, ops::scatter_add, {x, places, source}, ops::Axis{0});
  const auto byte = [&](core::Value* value) { return converted(call.graph(), value, DType::kU8); };
  core::Value* found = emit(call, ops::scatter_reduce, {byte(x), places, byte(source)},
                            ops::ScatterReduce{.axis = 0, .reduce = "amax"});
  return converted(call.graph(), found, DType::kBool);
}
// Indexing the elements' own positions finds where each element of the source is added.
void add_at(Call& call, core::Value* x, core::Value* source, std::vector<core::Value*> reading,
            const ops::IndexedAxes& axes) {
  const Dim count = element_count(x->type);
  const Shape shape = x->type.shape;
  reading[0] = reshaped(call, counting(call, count), shape);
  core::Value* places = emit(call, ops::index, std::move(reading), axes);
  source = expanded(call, source, places->type.shape);
  const Shape flat{element_count(places->type)};
  core::Value* sum =
      sum_at(call, reshaped(call, x, {count}), reshaped(call, places, flat), reshaped(call, source, flat));
  call.give(reshaped(call, sum, shape));
}
void index_put(Call& call) {
  core::Value* x = call.tensor("self");
  core::Value* source = converted(call.graph(), call.tensor("values"), x->type.dtype);
  if (put_by_mask(call, x, source)) return;
  Indices indices = indices_of(call, false);
  if (indices.values.empty()) return call.give(expanded(call, source, x->type.shape));
  std::vector<core::Value*> reading = indices.values;
  reading.insert(reading.begin(), x);
  if (call.flag("accumulate")) return add_at(call, x, source, std::move(reading), indices.axes);
  const Shape shape =
      emit(call, ops::index, std::move(reading), indices.axes)->type.shape;  // unused, so removed as dead
  std::vector<core::Value*> operands{x, expanded(call, source, shape)};
  operands.insert(operands.end(), indices.values.begin(), indices.values.end());
  call.give(emit(call, ops::index_put, std::move(operands), indices.axes));
}

constexpr Converter kIndexConverters[] = {
    {"aten._unsafe_index.Tensor", index, !kComposed, kBindsSizes},
    {"aten._unsafe_index_put.default", index_put},
    {"aten.index.Tensor", index, !kComposed, kBindsSizes},
    {"aten.index_put.default", index_put},
};

}  // namespace

std::span<const Converter> index_converters() { return kIndexConverters; }

}  // namespace ingot::core::aten
