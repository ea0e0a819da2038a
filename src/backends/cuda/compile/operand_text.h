// SPDX-License-Identifier: Apache-2.0
// Where the operands of a contraction lie, as functions of its kernel.
#pragma once

#include <string_view>

#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_map.h"

namespace ingot::core::cuda {

// Element, the type of operands; kChunk of them are 16 bytes; load_element(place), store_element(place,
// value), and element_of(chunk, k).
void write_element_functions(DType dtype, TemplateText& out);

// struct ASource; a_source(x, batch, row, depth, valid): what stays the same from part to part of the depth;
// a_place(x, source, first_depth, depth, valid): the place of a chunk of one part. In windows the channels of
// one place fill whole parts, or each thread is at a place of its own.
void write_a_places(const Node& node, const ProductShape& shape, TemplateText& out);
// b_place(x, batch, column, depth), and b_step(x): from one depth to the next.
void write_b_places(const Node& node, const ProductShape& shape, TemplateText& out);

// Both operands as the tensor maps of bulk copies; nothing if these cannot describe them.
struct BulkOperands {
  TensorMap a, b;  // without the extent of a box along rows and columns
  size_t a_row_dim, b_column_dim;
};
std::optional<BulkOperands> bulk_operands(const Node& node, const ProductShape& shape);
// copy_a_box(to, barrier, map, x, batch, first_row, depth): kRows rows, kDepth deep; copy_b_box likewise,
// from first_column.
void write_box_copies(const Node& node, const ProductShape& shape, TemplateText& out);

}  // namespace ingot::core::cuda
