// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/product_shape.h"

#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

Dim depth_of(const Node& node) {
  const Shape& x = node.operand_type(0).shape;
  if (node.op != &ops::convolution) return x.back();
  const Shape& weight = node.operand_type(1).shape;
  return x[1] * weight[2] * weight[3];
}

bool is_b_depth_inner(const Node& node) {
  if (node.op != &ops::matmul) return true;
  const TensorType& b = node.operand_type(1);
  return *innermost(b) == b.rank() - 2;
}

}  // namespace

ProductShape product_shape(const Node& node) {
  const TensorType& result = node.results[0]->type;
  ProductShape shape{.column_dim = node.op == &ops::convolution ? 1 : result.rank() - 1,
                     .batch = 1,
                     .rows = 1,
                     .depth = depth_of(node),
                     .b_depth_inner = is_b_depth_inner(node)};
  shape.columns = result.shape[shape.column_dim];
  for (size_t i = 0; i < result.rank(); ++i) {
    if (i == shape.column_dim) continue;
    const bool is_batch = node.op == &ops::matmul && i + 2 < result.rank();
    (is_batch ? shape.batch_dims : shape.row_dims).push_back(i);
    Dim& extent = is_batch ? shape.batch : shape.rows;
    extent = extent * result.shape[i];
  }
  return shape;
}

ProductSize typical_size(const Node& contraction, const ProductShape& shape, bool rounds_to_tf32,
                         const TemplateText& text) {
  // TF32 fragments take twice the time of halves; three products of parts, with the splitting, seven times.
  constexpr double kRounded = 2, kInParts = 7;
  ProductSize size{.batch = text.typical(shape.batch),
                   .rows = text.typical(shape.rows),
                   .columns = text.typical(shape.columns),
                   .depth = text.typical(shape.depth),
                   .b_depth_inner = shape.b_depth_inner,
                   .orders_columns = contraction.op != &ops::matmul &&
                                     shape.columns.constant().value_or(1) % kOrderedColumns == 0};
  if (is_half(contraction.operand_type(0).dtype)) return size;
  size.element = 4;
  size.arithmetic = rounds_to_tf32 ? kRounded : kInParts;
  return size;
}

std::vector<Dim> result_extents(const Node& contraction, const std::vector<size_t>& dims) {
  std::vector<Dim> extents;
  for (const size_t dim : dims) extents.push_back(contraction.results[0]->type.shape[dim]);
  return extents;
}

std::vector<Dim> broadcast_batch(const TensorType& operand, const std::vector<Dim>& batch) {
  return broadcast_index(std::span(operand.shape).first(operand.rank() - 2), batch);
}

}  // namespace ingot::core::cuda
