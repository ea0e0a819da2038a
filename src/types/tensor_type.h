// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "types/dim.h"
#include "types/dtype.h"
#include "types/layout.h"

namespace ingot::core {

using Shape = std::vector<Dim>;

// dtype, dims and layout of a value. Text form: f32[B,128,384], f32[1,64,56,56]{0, 2, 3, 1}.
struct TensorType {
  DType dtype = DType::kF32;
  Shape shape;
  Layout layout;

  size_t rank() const { return shape.size(); }
  bool operator==(const TensorType&) const = default;
};

Dim element_count(const TensorType& type);  // logical elements
Dim storage_bytes(
    const TensorType& type);  // layout padding included, each innermost row rounded up to a byte
std::string to_string(const TensorType& type);
std::string to_string(const Shape& shape);

}  // namespace ingot::core
