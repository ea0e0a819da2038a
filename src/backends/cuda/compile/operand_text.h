// SPDX-License-Identifier: Apache-2.0
// Addresses of a contraction's operands, as functions of its kernel.
#pragma once

#include <string_view>

#include "backends/cuda/compile/product_shape.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_map.h"

namespace ingot::core::cuda {

// Element, the type of operands; kChunk of them are 16 bytes; load_element(address), store_element(address,
// value), and element_of(chunk, k).
void write_element_functions(DType dtype, TemplateText& out);

// struct ASource; a_source(x, batch, row, depth, valid): what is invariant over the parts of the depth;
// a_place(x, source, first_depth, depth, valid): the address of a chunk of one part. In windows the channels
// of one tap fill whole parts, or each thread is at a tap of its own.
void write_a_places(const Node& node, const ProductShape& shape, TemplateText& out);
// b_place(x, batch, column, depth), and b_step(x), the stride along the depth.
void write_b_places(const Node& node, const ProductShape& shape, TemplateText& out);

// The tensor maps of both operands for bulk copies; nullopt if maps cannot describe them.
struct BulkOperands {
  TensorMap a, b;  // without the extent of a box along rows and columns
  size_t a_row_dim, b_column_dim;
};
std::optional<BulkOperands> bulk_operands(const Node& node, const ProductShape& shape);
// copy_a_box(to, barrier, map, x, batch, first_row, depth): kRows rows, kDepth deep; copy_b_box likewise,
// from first_column. `orders_columns`: the map of b is one with_ordered_columns.
void write_box_copies(const Node& node, const ProductShape& shape, bool orders_columns, TemplateText& out);

// The map of a dense b, [columns, depth], such that the sums of a lane of a warp group (PTX ISA, "Register
// fragments for wgmma") are of eight neighbouring columns of every kOrderedColumns. Copies begin at a
// multiple of these.
TensorMap with_ordered_columns(const TensorMap& b, int columns);

}  // namespace ingot::core::cuda
