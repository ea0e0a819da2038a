// SPDX-License-Identifier: Apache-2.0
// Writes at indices in data, which may repeat.
#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/promotion.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"
#include "ops/sort.h"

namespace ingot::core::aten {
namespace {

// Uses only the part of the source that the index covers.
core::Value* covered(Call& call, core::Value* source, const Shape& shape) {
  for (size_t i = 0; i < shape.size(); ++i) source = sliced(call, source, i, 0, shape[i]);
  return source;
}

// Indices that the program expanded over a whole dim: scatters take the original ones.
core::Value* unspread(core::Value* index, size_t axis) {
  const core::Node* producer = index->producer;
  if (producer == nullptr || producer->op != &ops::expand) return index;
  core::Value* given = producer->operands[0];
  const bool fits =
      given->type.rank() == index->type.rank() && given->type.shape[axis] == index->type.shape[axis];
  return fits ? given : index;
}

// Scatters the part of `source` that `covers` selects into self at `index`, all of the same rank; a tensor
// without dims counts as one element.
template <typename Struct>
void scatter_with(Call& call, const Op& op, core::Value* index, core::Value* source, const Shape& covers,
                  Struct attributes) {
  core::Value* x = call.tensor("self");
  const Shape shape = x->type.shape;
  source = converted(call.graph(), source, x->type.dtype);
  const auto with_dims = [&](core::Value* value) {
    return value->type.rank() == 0 ? reshaped(call, value, {1}) : value;
  };
  attributes.axis = static_cast<int64_t>(call.axis("dim", shape.size()));
  x = with_dims(x);
  index = with_dims(index);
  source = covered(call, with_dims(source), covers.empty() ? index->type.shape : covers);
  if (&op != &ops::scatter) index = unspread(index, static_cast<size_t>(attributes.axis));
  call.give(reshaped(call, emit(call, op, {x, index, source}, attributes), shape));
}
template <typename Struct>
void scatter_with(Call& call, const Op& op, core::Value* index, core::Value* source, Struct attributes) {
  scatter_with(call, op, index, source, index->type.shape, attributes);
}
core::Value* value_everywhere(Call& call) {
  return expanded(call, operand(call, "value", call.tensor("self")->type.dtype),
                  call.tensor("index")->type.shape);
}
void scatter(Call& call) {
  scatter_with(call, ops::scatter, call.tensor("index"), call.tensor("src"), ops::Axis{});
}
void scatter_value(Call& call) {
  scatter_with(call, ops::scatter, call.tensor("index"), value_everywhere(call), ops::Axis{});
}
void scatter_add(Call& call) {
  scatter_with(call, ops::scatter_add, call.tensor("index"), call.tensor("src"), ops::Axis{});
}

// torch has two names for each reduction.
std::string reduction_of(Call& call) {
  const std::string name = call.text("reduce");
  return name == "add" ? "sum" : name == "multiply" ? "prod" : name;
}
ops::ScatterReduce reduction(Call& call) {
  const bool include = !call.has("include_self") || call.flag("include_self");
  return {.reduce = reduction_of(call), .include_self = include};
}
void scatter_reduce(Call& call) {
  scatter_with(call, ops::scatter_reduce, call.tensor("index"), call.tensor("src"), reduction(call));
}
void scatter_reduce_value(Call& call) {
  scatter_with(call, ops::scatter_reduce, call.tensor("index"), value_everywhere(call), reduction(call));
}

// A vector of indices along `dim`, each for all of the source's other dims.
core::Value* spread_index(Call& call, const Shape& source) {
  core::Value* index = call.tensor("index");
  if (source.empty()) return reshaped(call, index, {});
  Shape spread(source.size(), 1);
  spread[call.axis("dim", source.size())] = element_count(index->type);
  return reshaped(call, index, spread);
}
void index_add(Call& call) {
  core::Value *x = call.tensor("self"), *source = call.tensor("source");
  if (source->type.rank() != x->type.rank()) source = reshaped(call, source, x->type.shape);
  if (call.number("alpha") != 1)
    source = emit(call, ops::multiply, {source, operand(call, "alpha", source->type.dtype)});
  scatter_with(call, ops::scatter_add, spread_index(call, source->type.shape), source, source->type.shape,
               ops::Axis{});
}
void index_reduce(Call& call) {
  core::Value* source = call.tensor("source");
  scatter_with(call, ops::scatter_reduce, spread_index(call, source->type.shape), source, source->type.shape,
               reduction(call));
}

// Each true element of the mask takes the next element of the source.
void masked_scatter(Call& call) {
  core::Value* source = call.tensor("source");
  const Shape shape = call.result_meta().shape;
  core::Value* x = expanded(call, call.tensor("self"), shape);
  core::Value* mask = expanded(call, converted(call.graph(), call.tensor("mask"), DType::kBool), shape);
  source = reshaped(call, source, {element_count(source->type)});
  if (source->type.shape[0] == Dim(0)) return call.give(x);
  if (range_of(source->type.shape[0], call.graph().symbols).min < 1)  // one to read where nothing is chosen
    source = concatenated(call, {source, filled(call, {1}, 0, source->type.dtype)}, 0);
  core::Value* values = emit(call, ops::take, {source, rank_among_true(call, mask)}, ops::Axis{0});
  values = reshaped(call, values, shape);
  call.give(emit(call, ops::select, {mask, converted(call.graph(), values, x->type.dtype), x}));
}

// Elements of the flat tensor; negative indices count from its end.
void put(Call& call) {
  core::Value *x = call.tensor("self"), *source = call.tensor("source"), *index = call.tensor("index");
  const Dim count = element_count(x->type), chosen = element_count(index->type);
  const Term given(call, reshaped(call, converted(call.graph(), index, DType::kI64), {chosen}));
  const Term at =
      (given < 0).choose(given + Term(call, size_scalar(call.graph(), count, DType::kI64)), given);
  const Op& op = call.flag("accumulate") ? ops::scatter_add : ops::scatter;
  core::Value* result =
      emit(call, op, {reshaped(call, x, {count}), at, reshaped(call, source, {chosen})}, ops::Axis{0});
  call.give(reshaped(call, result, x->type.shape));
}

constexpr Converter kScatterConverters[] = {
    {"aten.index_add.default", index_add},           {"aten.index_reduce.default", index_reduce},
    {"aten.masked_scatter.default", masked_scatter}, {"aten.put.default", put},
    {"aten.scatter.reduce", scatter_reduce},         {"aten.scatter.src", scatter},
    {"aten.scatter.value", scatter_value},           {"aten.scatter.value_reduce", scatter_reduce_value},
    {"aten.scatter_add.default", scatter_add},       {"aten.scatter_reduce.two", scatter_reduce},
};

}  // namespace

std::span<const Converter> scatter_converters() { return kScatterConverters; }

}  // namespace ingot::core::aten
