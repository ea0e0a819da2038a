// SPDX-License-Identifier: Apache-2.0
// Reading and writing at indices that are data, and sorting.
#include <algorithm>

#include "importers/aten/building.h"
#include "importers/aten/promotion.h"
#include "importers/aten/rows.h"

namespace ingot::core::aten {
namespace {

int64_t axis_of(Call& call, const core::Value* x) {
  return static_cast<int64_t>(call.axis("dim", x->type.rank()));
}

void embedding(Call& call) {
  call.give(emit(call, ops::take, {call.tensor("weight"), call.tensor("indices")}, ops::Axis{0}));
}
void index_select(Call& call) {
  core::Value *x = call.tensor("self"), *index = call.tensor("index");
  if (x->type.rank() == 0) return call.give(x);
  index = reshaped(call, index, {element_count(index->type)});
  call.give(emit(call, ops::take, {x, index}, ops::Axis{axis_of(call, x)}));
}
void take(Call& call) {
  core::Value* flat = reshaped(call, call.tensor("self"), {element_count(call.tensor("self")->type)});
  call.give(emit(call, ops::index, {flat, call.tensor("index")}, ops::IndexedAxes{{0}}));
}
void gather(Call& call) {
  core::Value *x = call.tensor("self"), *index = call.tensor("index");
  if (x->type.rank() == 0) {
    x = reshaped(call, x, {1});
    core::Value* flat = reshaped(call, index, {element_count(index->type)});
    return call.give(reshaped(call, emit(call, ops::gather, {x, flat}, ops::Axis{0}), index->type.shape));
  }
  call.give(emit(call, ops::gather, {x, index}, ops::Axis{axis_of(call, x)}));
}

// The index tensors that are given, and their axes.
struct Indices {
  std::vector<core::Value*> values;
  ops::IndexedAxes axes;
};
Indices indices_of(Call& call) {
  Indices result;
  const std::vector<core::Value*> given = call.tensors("indices");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] == nullptr) continue;
    const DType dtype = given[i]->type.dtype;
    if (dtype == DType::kBool || dtype == DType::kU8)
      call.refuse("a mask as index: the size of the result depends on its data");
    result.values.push_back(dtype == DType::kI32 ? given[i] : converted(call.graph(), given[i], DType::kI64));
    result.axes.axes.push_back(static_cast<int64_t>(i));
  }
  const bool mixed = std::ranges::any_of(
      result.values, [&](core::Value* value) { return value->type.dtype != result.values[0]->type.dtype; });
  for (core::Value*& value : result.values) {
    if (mixed) value = converted(call.graph(), value, DType::kI64);
  }
  return result;
}
void index(Call& call) {
  core::Value* x = call.tensor("self");
  Indices indices = indices_of(call);
  if (indices.values.empty()) return call.give(x);
  indices.values.insert(indices.values.begin(), x);
  call.give(emit(call, ops::index, std::move(indices.values), indices.axes));
}

// A bool mask of the shape of x is a choice, not an index.
bool put_by_mask(Call& call, core::Value* x, core::Value* source) {
  const std::vector<core::Value*> given = call.tensors("indices");
  if (given.size() != 1 || given[0] == nullptr || given[0]->type.dtype != DType::kBool ||
      element_count(source->type) != Dim(1))
    return false;
  core::Value* mask = given[0];
  Shape shape = mask->type.shape;
  while (shape.size() < x->type.rank()) shape.push_back(1);
  call.give(emit(call, ops::select, {reshaped(call, mask, shape), reshaped(call, source, {}), x}));
  return true;
}
void index_put(Call& call) {
  core::Value* x = call.tensor("self");
  core::Value* source = converted(call.graph(), call.tensor("values"), x->type.dtype);
  if (call.flag("accumulate")) call.refuse("accumulating");
  if (put_by_mask(call, x, source)) return;
  Indices indices = indices_of(call);
  if (indices.values.empty()) return call.give(expanded(call, source, x->type.shape));
  std::vector<core::Value*> reading = indices.values;
  reading.insert(reading.begin(), x);
  const Shape shape =
      emit(call, ops::index, std::move(reading), indices.axes)->type.shape;  // unused, so removed
  std::vector<core::Value*> operands{x, expanded(call, source, shape)};
  operands.insert(operands.end(), indices.values.begin(), indices.values.end());
  call.give(emit(call, ops::index_put, std::move(operands), indices.axes));
}

void index_copy(Call& call) {
  core::Value *x = call.tensor("self"), *index = call.tensor("index"), *source = call.tensor("source");
  if (x->type.rank() == 0) return call.give(reshaped(call, source, {}));
  index = reshaped(call, index, {element_count(index->type)});
  call.give(emit(call, ops::index_copy, {x, index, source}, ops::Axis{axis_of(call, x)}));
}
void index_fill(Call& call) {
  core::Value *x = call.tensor("self"), *index = call.tensor("index");
  if (x->type.rank() == 0) return call.give(operand(call, "value", x->type.dtype));
  index = reshaped(call, index, {element_count(index->type)});
  const int64_t axis = axis_of(call, x);
  Shape shape = x->type.shape;
  shape[static_cast<size_t>(axis)] = index->type.shape[0];
  core::Value* source = expanded(call, operand(call, "value", x->type.dtype), shape);
  call.give(emit(call, ops::index_copy, {x, index, source}, ops::Axis{axis}));
}

// Only the part of the source that the index covers counts.
core::Value* covered(Call& call, core::Value* source, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) source = sliced(call, source, i, 0, shape[i]);
  return source;
}
void scatter_by(Call& call, const Op& op, core::Value* source) {
  core::Value *x = call.tensor("self"), *index = call.tensor("index");
  if (x->type.rank() == 0) call.refuse("a tensor without dims");
  source = converted(call.graph(), source, x->type.dtype);
  call.give(
      emit(call, op, {x, index, covered(call, source, index->type.shape)}, ops::Axis{axis_of(call, x)}));
}
void scatter(Call& call) { scatter_by(call, ops::scatter, call.tensor("src")); }
void scatter_value(Call& call) {
  core::Value* value = operand(call, "value", call.tensor("self")->type.dtype);
  scatter_by(call, ops::scatter, expanded(call, value, call.tensor("index")->type.shape));
}
void scatter_add(Call& call) { scatter_by(call, ops::scatter_add, call.tensor("src")); }
void index_add(Call& call) {
  core::Value *x = call.tensor("self"), *index = call.tensor("index"), *source = call.tensor("source");
  if (x->type.rank() == 0 || call.number("alpha") != 1) call.refuse("a tensor without dims, or a factor");
  const int64_t axis = axis_of(call, x);
  Shape spread(x->type.rank(), 1);
  spread[static_cast<size_t>(axis)] = element_count(index->type);
  index = expanded(call, reshaped(call, index, spread), source->type.shape);
  call.give(emit(call, ops::scatter_add, {x, index, source}, ops::Axis{axis}));
}

void give_pair(Call& call, const core::Node* node) {
  call.give(0, node->results[0]);
  call.give(1, node->results[1]);
}
void sort(Call& call) {
  core::Value* x = call.tensor("self");
  if (x->type.rank() == 0) call.refuse("a tensor without dims");
  give_pair(call, call.graph().add(ops::sort, {x}, ops::Sort{axis_of(call, x), call.flag("descending")}));
}
void argsort(Call& call) {
  core::Value* x = call.tensor("self");
  if (x->type.rank() == 0) call.refuse("a tensor without dims");
  call.give(
      call.graph().add(ops::sort, {x}, ops::Sort{axis_of(call, x), call.flag("descending")})->results[1]);
}
void top_k(Call& call) {
  core::Value* x = call.tensor("self");
  if (x->type.rank() == 0) call.refuse("a tensor without dims");
  give_pair(call, call.graph().add(ops::top_k, {x},
                                   ops::TopK{axis_of(call, x), call.integer("k"), call.flag("largest")}));
}

constexpr Row kRows[] = {
    {"aten._unsafe_index.Tensor", index},
    {"aten._unsafe_index_put.default", index_put},
    {"aten.argsort.default", argsort},
    {"aten.argsort.stable", argsort},
    {"aten.embedding.default", embedding},
    {"aten.gather.default", gather},
    {"aten.index.Tensor", index},
    {"aten.index_add.default", index_add},
    {"aten.index_copy.default", index_copy},
    {"aten.index_fill.int_Scalar", index_fill},
    {"aten.index_fill.int_Tensor", index_fill},
    {"aten.index_put.default", index_put},
    {"aten.index_select.default", index_select},
    {"aten.scatter.src", scatter},
    {"aten.scatter.value", scatter_value},
    {"aten.scatter_add.default", scatter_add},
    {"aten.sort.default", sort},
    {"aten.sort.stable", sort},
    {"aten.take.default", take},
    {"aten.topk.default", top_k},
};

}  // namespace

std::span<const Row> index_rows() { return kRows; }

}  // namespace ingot::core::aten
