// SPDX-License-Identifier: Apache-2.0
#include "types/tensor_type.h"

namespace ingot::core {

Dim element_count(const TensorType& type) { return product(type.shape); }

Dim storage_bytes(const TensorType& type) {
  const Shape extents = storage_shape(type.layout, type.shape);
  const Dim row = extents.empty() ? Dim(1) : extents.back();
  const Dim bytes = ceil_divide(row * Dim(bit_width(type.dtype)), 8);
  return extents.empty() ? bytes : product(std::span(extents).first(extents.size() - 1)) * bytes;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const Dim& dim : shape) text += (text.size() == 1 ? "" : ",") + dim.to_string();
  return text + "]";
}

std::string to_string(const TensorType& type) {
  return std::string(name(type.dtype)) + to_string(type.shape) + to_string(type.layout);
}

}  // namespace ingot::core
