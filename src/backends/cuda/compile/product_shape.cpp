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

ProductSize typical_size(const ProductShape& shape, const TemplateText& text) {
  return {text.typical(shape.batch), text.typical(shape.rows), text.typical(shape.columns),
          text.typical(shape.depth), shape.b_depth_inner};
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
