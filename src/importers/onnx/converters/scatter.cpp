// SPDX-License-Identifier: Apache-2.0
// Writes at indices in data; negative ones count from the end.
#include <algorithm>
#include <array>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/converters/index_tuples.h"
#include "ops/axis.h"
#include "ops/index.h"
#include "ops/reshape.h"
#include "ops/sort.h"

namespace ingot::core::onnx {
namespace {

// "" for plain writes, otherwise the word of our operator.
std::string reduction_of(Call& call) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kNames{
      {{"none", ""}, {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}}};
  const std::string given = call.attribute_text("reduction", "none");
  const auto found = std::ranges::find(kNames, given, &std::pair<std::string_view, std::string_view>::first);
  if (found == kNames.end()) refuse_node("there is no reduction '" + given + "'");
  return std::string(found->second);
}

void convert_scatter_elements(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t axis = call.axis(call.attribute_integer("axis", 0), x->type.rank());
  const auto along = static_cast<int64_t>(axis);
  Value* indices = wrapped_indices(graph, call.tensor(1), x->type.shape[axis]);
  const std::string reduction = reduction_of(call);
  const std::vector<Value*> operands{x, indices, call.tensor(2)};
  call.give(reduction.empty()
                ? graph.call(ops::scatter, operands, ops::Axis{along})
                : graph.call(ops::scatter_reduce, operands, ops::ScatterReduce{along, reduction, true}));
}

// The dims that tuples index, joined to one: duplicates are reduced along it.
Value* reduced_at_tuples(Graph& graph, Value* x, const std::vector<Value*>& tuples, Value* source,
                         const std::string& reduction) {
  const Shape shape = x->type.shape, indices = tuples[0]->type.shape;
  const std::span<const Dim> dims(shape);
  const Dim rows = product(dims.first(tuples.size())), width = product(dims.subspan(tuples.size())),
            count = product(indices);
  Value* position = nullptr;
  for (size_t i = 0; i < tuples.size(); ++i) {
    const Term index(graph, wrapped_indices(graph, tuples[i], shape[i]));
    position = position == nullptr
                   ? static_cast<Value*>(index)
                   : Term(graph, position) * Term(graph, size_scalar(graph, shape[i], DType::kI64)) + index;
  }
  position = expanded(graph, reshaped(graph, position, {count, 1}), {count, width});
  Value* flat =
      graph.call(ops::scatter_reduce,
                 {reshaped(graph, x, {rows, width}), position, reshaped(graph, source, {count, width})},
                 ops::ScatterReduce{0, reduction, true});
  return reshaped(graph, flat, shape);
}

void convert_scatter_nd(Call& call) {
  Graph& graph = call.graph();
  Value *x = call.tensor(0), *source = call.tensor(2);
  const std::vector<Value*> tuples = index_tuples(graph, x, call.tensor(1), 0);
  const std::string reduction = reduction_of(call);
  if (!reduction.empty()) return call.give(reduced_at_tuples(graph, x, tuples, source, reduction));
  std::vector<Value*> operands{x, source};
  operands.insert(operands.end(), tuples.begin(), tuples.end());
  call.give(graph.call(ops::index_put, std::move(operands), ops::IndexedAxes{all_axes(tuples.size())}));
}

constexpr auto kScatter = std::to_array<Converter>({
    {"Scatter", convert_scatter_elements, nullptr, 9},
    {"ScatterElements", convert_scatter_elements, nullptr, 11},
    {"ScatterND", convert_scatter_nd, nullptr, 11},
});

}  // namespace

std::span<const Converter> scatter_converters() { return kScatter; }

}  // namespace ingot::core::onnx
