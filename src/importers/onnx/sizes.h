// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace ingot::core::onnx {

// The value of an integer or bool tensor, each element an expression over the symbols of shapes: what a chain
// of Shape, Gather, Mul, Concat ... computes.
struct Sizes {
  DType dtype = DType::kI64;
  std::vector<int64_t> shape;
  std::vector<Dim> elements;  // row-major

  bool is_constant() const;
};

constexpr size_t kMostSizes = 1024;  // elements; larger tensors are data

bool may_be_sizes(DType dtype);
std::optional<Sizes> sizes_of(const Tensor& tensor);  // nullopt if it is data
Tensor to_tensor(const Sizes& constant);
Value* to_value(Graph& graph, const Sizes& sizes);

}  // namespace ingot::core::onnx
