// SPDX-License-Identifier: Apache-2.0
// Short notation for the samples of records.
#pragma once

#include "ir/op.h"

namespace ingot::core::ops {

using Samples = std::vector<Sample>;

inline SampleOperand tensor(DType dtype, Shape shape, double low = -2, double high = 2) {
  return {TensorType{dtype, std::move(shape), {}}, low, high};
}
inline SampleOperand f32(Shape shape, double low = -2, double high = 2) {
  return tensor(DType::kF32, std::move(shape), low, high);
}
inline SampleOperand i64(Shape shape, double low = -5, double high = 5) {
  return tensor(DType::kI64, std::move(shape), low, high);
}
inline SampleOperand boolean_tensor(Shape shape) { return tensor(DType::kBool, std::move(shape), 0, 1); }

inline Sample sample(std::vector<SampleOperand> operands) { return {std::move(operands), {}}; }
template <typename Struct>
Sample sample(std::vector<SampleOperand> operands, const Struct& attributes) {
  return {std::move(operands), to_values(attributes)};
}

// Sizes that samples share: B, S and T, which tests bind to small values.
inline Dim batch() { return Dim::symbol("B"); }
inline Dim length() { return Dim::symbol("S"); }

}  // namespace ingot::core::ops
