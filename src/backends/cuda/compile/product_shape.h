// SPDX-License-Identifier: Apache-2.0
// A contraction seen as a product of matrices: result[batch, rows, columns] = a[batch, rows, depth] b[batch,
// depth, columns]. In a convolution the rows are the output pixels of all images, the columns are channels,
// and the depth is (y, x, channel) of the window.
#pragma once

#include <vector>

#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tile.h"
#include "ir/graph.h"

namespace ingot::core::cuda {

struct ProductShape {
  std::vector<size_t> batch_dims, row_dims;  // of the result
  size_t column_dim;
  Dim batch, rows, columns, depth;
  bool b_depth_inner;  // b is contiguous along the depth
};
ProductShape product_shape(const Node& contraction);
ProductSize typical_size(const Node& contraction, const ProductShape& shape, bool rounds_to_tf32,
                         const TemplateText& text);

// The extents of `dims` of the result.
std::vector<Dim> result_extents(const Node& contraction, const std::vector<size_t>& dims);

// The part of an index into an operand that follows from `batch`, the index into the result's batch dims: all
// dims but the last two.
std::vector<Dim> broadcast_batch(const TensorType& operand, const std::vector<Dim>& batch);

}  // namespace ingot::core::cuda
