// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/converters/index_tuples.h"

namespace ingot::core::onnx {

std::vector<Value*> index_tuples(Graph& graph, Value* x, Value* indices, int64_t batch) {
  const Shape shape = indices->type.shape;
  const auto rank = static_cast<int64_t>(x->type.rank());
  if (shape.empty() || batch < 0 || batch >= static_cast<int64_t>(shape.size()) || batch >= rank)
    refuse_node("the indices have too few dims");
  const auto width = shape.back().constant();
  if (!width || *width < 1 || batch + *width > rank) refuse_node("the index tuples have a wrong length");
  const size_t last = shape.size() - 1;
  std::vector<Value*> tuples;
  for (int64_t axis = 0; axis < batch; ++axis) {
    Shape line(last, 1);
    line[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis)];
    tuples.push_back(reshaped(graph, counting(graph, shape[static_cast<size_t>(axis)]), std::move(line)));
  }
  for (int64_t i = 0; i < *width; ++i) {
    Value* index = without_axis(graph, sliced(graph, indices, last, i, i + 1), last);
    tuples.push_back(converted(graph, index, DType::kI64));
  }
  return tuples;
}

}  // namespace ingot::core::onnx
