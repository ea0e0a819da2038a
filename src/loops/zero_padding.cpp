// SPDX-License-Identifier: Apache-2.0
#include "loops/zero_padding.h"

#include <string>

namespace ingot::core::loops {
namespace {

Expr zero(DType stored) {
  const DType dtype = arithmetic_dtype(stored);
  return is_floating(dtype) ? constant(dtype, 0) : integer_constant(dtype, 0);
}

// Logical extents that storage has room for, per dim: blocked dims are rounded up to whole blocks.
Shape padded_shape(const TensorType& type) {
  if (type.layout.is_row_major()) return type.shape;
  Shape padded(type.rank(), Dim(1));
  const Shape extents = storage_shape(type.layout, type.shape);
  for (size_t i = 0; i < extents.size(); ++i) {
    Dim& room = padded[static_cast<size_t>(type.layout.axes[i].dim)];
    room = room * extents[i];
  }
  return padded;
}

// The index along each storage axis.
std::vector<Dim> storage_index(const Layout& layout, std::span<const Dim> index) {
  std::vector<Dim> result;
  for (const LayoutAxis& axis : layout.axes) {
    const Dim block = floor_divide(index[static_cast<size_t>(axis.dim)], axis.divisor);
    result.push_back(axis.modulus == 0 ? block : modulo(block, axis.modulus));
  }
  return result;
}

// Zeros at the indices of `dim` beyond the shape. Dims before it stay within the shape: earlier stages have
// padded them.
Stage pad_along(const TensorType& type, const Shape& padded, size_t dim) {
  Stage stage{.name = "padding" + std::to_string(dim), .value = zero(type.dtype)};
  std::vector<Dim> index;
  for (size_t i = 0; i < type.rank(); ++i) {
    const Dim extent = i < dim ? type.shape[i] : i == dim ? padded[i] - type.shape[i] : padded[i];
    stage.loops.push_back({"$p" + std::to_string(i), extent});
    const Dim variable = Dim::symbol(stage.loops.back().variable);
    index.push_back(i == dim ? type.shape[i] + variable : variable);
  }
  stage.store = Store{0, storage_index(type.layout, index)};
  return stage;
}

}  // namespace

std::optional<Kernel> zero_padding(const TensorType& type) {
  const Shape padded = padded_shape(type);
  Kernel kernel{.name = "zero_padding"};
  kernel.buffers = {{"result", {type.dtype, storage_shape(type.layout, type.shape), {}}, Access::kReadWrite}};
  for (size_t dim = 0; dim < type.rank(); ++dim) {
    if (padded[dim] != type.shape[dim]) kernel.stages.push_back(pad_along(type, padded, dim));
  }
  if (kernel.stages.empty()) return std::nullopt;
  return kernel;
}

}  // namespace ingot::core::loops
