// SPDX-License-Identifier: Apache-2.0
// Reads at indices in data; negative ones count from the end.
#include <algorithm>
#include <array>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/converters/index_tuples.h"
#include "ops/axis.h"
#include "ops/index.h"

namespace ingot::core::onnx {
namespace {

void convert_gather(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t axis = call.axis(call.attribute_integer("axis", 0), x->type.rank());
  const Dim size = x->type.shape[axis];
  const std::optional<Sizes> known = call.sizes(1);
  if (known && known->elements.size() == 1) {  // a view of one element
    const Dim index = known->elements[0];
    const DimRange range = range_of(index, graph.symbols);
    if (range.min >= 0 || range.max < 0) {
      const Dim at = range.min >= 0 ? index : size + index;
      Value* one = sliced(graph, x, axis, at, at + 1);
      Shape shape = x->type.shape;
      shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
      shape.insert(shape.begin() + static_cast<ptrdiff_t>(axis), known->shape.size(), 1);
      return call.give(reshaped(graph, one, std::move(shape)));
    }
  }
  Value* indices = wrapped_indices(graph, call.tensor(1), size);
  call.give(graph.call(ops::take, {x, indices}, ops::Axis{static_cast<int64_t>(axis)}));
}

void convert_gather_elements(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t axis = call.axis(call.attribute_integer("axis", 0), x->type.rank());
  Value* indices = wrapped_indices(graph, call.tensor(1), x->type.shape[axis]);
  call.give(graph.call(ops::gather, {x, indices}, ops::Axis{static_cast<int64_t>(axis)}));
}

void convert_gather_nd(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const int64_t batch = call.attribute_integer("batch_dims", 0);
  std::vector<Value*> operands{x};
  const std::vector<Value*> indices = index_tuples(graph, x, call.tensor(1), batch);
  operands.insert(operands.end(), indices.begin(), indices.end());
  call.give(graph.call(ops::index, std::move(operands), ops::IndexedAxes{all_axes(indices.size())}));
}

constexpr auto kGather = std::to_array<Converter>({
    {"Gather", convert_gather},
    {"GatherElements", convert_gather_elements, nullptr, 11},
    {"GatherND", convert_gather_nd, nullptr, 11},
});

}  // namespace

std::span<const Converter> gather_converters() { return kGather; }

}  // namespace ingot::core::onnx
