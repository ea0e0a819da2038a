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

constexpr Converter kScatterConverters[] = {
    {"aten.scatter.reduce", scatter_reduce},   {"aten.scatter.src", scatter},
    {"aten.scatter.value", scatter_value},     {"aten.scatter.value_reduce", scatter_reduce_value},
    {"aten.scatter_add.default", scatter_add}, {"aten.scatter_reduce.two", scatter_reduce},
};

}  // namespace

std::span<const Converter> scatter_converters() { return kScatterConverters; }

}  // namespace ingot::core::aten
