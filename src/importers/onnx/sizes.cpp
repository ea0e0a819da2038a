// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/sizes.h"

#include <algorithm>

#include "importers/onnx/building.h"

namespace ingot::core::onnx {

bool Sizes::is_constant() const { return std::ranges::all_of(elements, &Dim::is_constant); }

bool may_be_sizes(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kBool;
}

std::optional<Sizes> sizes_of(const Tensor& tensor) {
  const int64_t count = tensor.elements();
  if (!may_be_sizes(tensor.dtype) || count > static_cast<int64_t>(kMostSizes)) return std::nullopt;
  Sizes sizes{tensor.dtype, tensor.shape, {}};
  TensorView flat = tensor.view();
  flat.shape = {count};
  flat.strides = {1};
  for (int64_t i = 0; i < count; ++i) sizes.elements.emplace_back(read_integer(flat, {{i}}));
  return sizes;
}

Tensor to_tensor(const Sizes& constant) {
  Tensor tensor = make_tensor(constant.dtype, constant.shape);
  TensorView flat = tensor.view();
  flat.shape = {static_cast<int64_t>(constant.elements.size())};
  flat.strides = {1};
  for (size_t i = 0; i < constant.elements.size(); ++i)
    write_integer(flat, {{static_cast<int64_t>(i)}}, constant.elements[i].constant().value());
  return tensor;
}

Value* to_value(Graph& graph, const Sizes& sizes) {
  if (sizes.is_constant()) return graph.add_constant(to_tensor(sizes));
  std::vector<Value*> elements;
  for (const Dim& element : sizes.elements)
    elements.push_back(unsqueezed(graph, size_scalar(graph, element, sizes.dtype), 0));
  return reshaped(graph, concatenated(graph, std::move(elements), 0),
                  Shape(sizes.shape.begin(), sizes.shape.end()));
}

}  // namespace ingot::core::onnx
