// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/matrix_operand.h"

#include "backends/cpu/compile/llvm/elements.h"

namespace ingot::core::cpu {

namespace {

std::vector<Dim> batch_index(const Shape& batch) {
  std::vector<Dim> index(batch.size());
  Dim rest = Dim::symbol(kBatchSymbol);
  for (size_t dim = batch.size(); dim-- > 1;) {
    Dim extent = batch[dim] == Dim(0) ? 1 : batch[dim];  // for an empty result, no index is ever computed
    index[dim] = modulo(rest, extent);
    rest = floor_divide(rest, extent);
  }
  if (!batch.empty()) index[0] = rest;
  return index;
}

}  // namespace

MatrixOperand place_matrix(const TensorType& type, const Shape& batch, const Dim& group) {
  size_t dims = type.rank() - 2;
  std::vector<Dim> all = batch_index(batch), place;
  for (size_t i = 0; i < dims; ++i) {
    place.push_back(type.shape[i] == Dim(1) ? Dim(0) : all[all.size() - dims + i]);
  }
  if (!place.empty()) place.back() = floor_divide(place.back(), group);
  auto offset = [&](const Dim& row, const Dim& column) {
    std::vector<Dim> index = place;
    index.insert(index.end(), {row, column});
    return storage_offset(type.layout, type.shape, index);
  };
  Dim start = offset(0, 0);
  return {start, offset(1, 0) - start, offset(0, 1) - start};
}

llvm::Value* PlacedMatrix::at(Builder& builder, llvm::Value* row, llvm::Value* column) const {
  llvm::Value* offset = builder.CreateNSWMul(row, row_stride);
  return builder.CreateGEP(element, start,
                           builder.CreateNSWAdd(offset, builder.CreateNSWMul(column, column_stride)));
}

PlacedMatrix place_at_batch(Scaffold& scaffold, const MatrixOperand& operand, const TensorType& type,
                            llvm::Value* buffer) {
  Builder& builder = scaffold.builder;
  llvm::Type* element = stored_type(builder, type.dtype);
  llvm::Value* start = builder.CreateGEP(element, buffer, scaffold.dims.emit(operand.start));
  return {element, start, scaffold.dims.emit(operand.row_stride), scaffold.dims.emit(operand.column_stride)};
}

bool is_innermost(const TensorType& type, size_t dim) {
  if (type.layout.is_row_major()) return dim + 1 == type.rank();
  return type.layout.is_permutation() && type.layout.axes.back().dim == static_cast<int32_t>(dim);
}

}  // namespace ingot::core::cpu
