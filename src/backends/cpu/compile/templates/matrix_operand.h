// SPDX-License-Identifier: Apache-2.0
// Offsets of the matrices of a batched operand in memory, for any layout.
#pragma once

#include "backends/cpu/compile/templates/scaffold.h"

namespace ingot::core::cpu {

// The symbol of the flattened batch index, in the dims of MatrixOperand.
inline constexpr const char* kBatchSymbol = "$matrix.batch";

// Element (batch, row, column) is at start(batch) + row * row_stride + column * column_stride, in elements.
struct MatrixOperand {
  Dim start, row_stride, column_stride;
};

// `type` has a permutation as its layout, or none; its batch dims broadcast to `batch`, the result's. `group`
// adjacent entries of the last batch dim share one matrix (grouped heads).
MatrixOperand place_matrix(const TensorType& type, const Shape& batch, const Dim& group = 1);

// The matrix at the batch index in the scaffold's dims.
struct PlacedMatrix {
  llvm::Type* element;
  llvm::Value *start, *row_stride, *column_stride;

  llvm::Value* at(Builder& builder, llvm::Value* row, llvm::Value* column) const;
};
PlacedMatrix place_at_batch(Scaffold& scaffold, const MatrixOperand& operand, const TensorType& type,
                            llvm::Value* buffer);

// Whether dim `dim` is innermost in memory.
bool is_innermost(const TensorType& type, size_t dim);

}  // namespace ingot::core::cpu
