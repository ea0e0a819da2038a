// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/operand_text.h"

#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/type_text.h"
#include "ops/convolution.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

void write_window_places(const Node& node, const ProductShape& shape, TemplateText& out) {
  const TensorType& type = node.operand_type(0);
  const auto convolution = node.attributes<ops::Convolution>();
  IndexScope scope = out.scope;
  const auto size = [&](size_t dim) { return scope.text(type.shape[dim]); };
  out.line("struct ASource {{ const Element* image; idx y, x; bool valid; }};\n");
  out.open_function("ASource a_source(const Operands& x, idx batch, idx row, int, bool valid)");
  out.decode(result_extents(node, shape.row_dims), "row", "r", scope);
  out.line("return {{x.a + r0 * {} * {} * {}, r1 * {} - {}, r2 * {} - {}, valid}};\n}}\n", size(2), size(3),
           size(1), convolution.stride[0], convolution.padding[0], convolution.stride[1],
           convolution.padding[1]);
  out.open_function(
      "const Element* a_place(const Operands& x, const ASource& from, idx first_depth, int depth, bool& "
      "valid)");
  const std::string width = scope.text(node.operand_type(1).shape[3]);
  out.line(
      "const bool together = {} % kDepth == 0;\nconst idx at = together ? first_depth : first_depth + "
      "depth;\n",
      size(1));
  out.line("const idx window = at / {}, channel = at % {} + (together ? depth : 0);\n", size(1), size(1));
  out.line("const idx y = from.y + window / {} * {}, px = from.x + window % {} * {};\n", width,
           convolution.dilation[0], width, convolution.dilation[1]);
  out.line("valid = valid && from.valid && y >= 0 && y < {} && px >= 0 && px < {};\n", size(2), size(3));
  out.line("return from.image + (y * {} + px) * {} + channel;\n}}\n", size(3), size(1));
}

// The index into an operand of a matmul; the caller names its last two dims.
std::vector<Dim> batch_index_of(const Node& node, size_t operand, const ProductShape& shape,
                                TemplateText& out, IndexScope& scope) {
  const auto batch = out.decode(result_extents(node, shape.batch_dims), "batch", "n", scope);
  return broadcast_batch(node.operand_type(operand), batch);
}

bool is_convolution_of_points(const Node& node) {
  const auto convolution = node.attributes<ops::Convolution>();
  const Shape& weight = node.operand_type(1).shape;
  const auto all = [](const std::vector<int64_t>& values, int64_t value) {
    return std::ranges::all_of(values, [&](int64_t each) { return each == value; });
  };
  return weight[2] == Dim(1) && weight[3] == Dim(1) && all(convolution.stride, 1) &&
         all(convolution.padding, 0);
}

// Without zeros beside the image a window's row of adjacent pixels is contiguous, as the channels of one
// pixel are: it is copied as those of one tap. The pixels that begin rows overlap.
bool copies_window_rows(const Node& node) {
  const auto convolution = node.attributes<ops::Convolution>();
  const Shape& weight = node.operand_type(1).shape;
  const auto channels = weight[1].constant(), taps = weight[3].constant();
  return channels && taps && *channels % kMapInner != 0 && *channels * *taps % kMapInner == 0 &&
         convolution.padding[1] == 0 && convolution.dilation[1] == 1;
}

// What one box of a window has, contiguously: the channels of a tap, or those of a row of taps.
Dim window_inner(const Node& node) {
  const Shape& weight = node.operand_type(1).shape;
  return copies_window_rows(node) ? weight[1] * weight[3] : weight[1];
}

// Limits of the encoding of maps. nullopt if boxes would have channels of several taps.
std::optional<TensorMap::Windows> windows_of(const Node& node) {
  const auto convolution = node.attributes<ops::Convolution>();
  const Shape& weight = node.operand_type(1).shape;
  const auto inner = window_inner(node).constant();
  if (!inner || *inner % kMapInner != 0) return std::nullopt;
  TensorMap::Windows windows{};
  for (size_t i = 0; i < kMapPlaneRank; ++i) {  // y, then x
    const auto taps = weight[2 + i].constant();
    if (!taps) return std::nullopt;
    const int64_t reach = (*taps - 1) * convolution.dilation[i], padding = convolution.padding[i];
    const size_t at = kMapPlaneRank - 1 - i;
    windows.steps[at] = convolution.stride[i];
    windows.lower[at] = -padding;
    windows.upper[at] = padding - reach;
    if (convolution.stride[i] > kMostMapStep || padding > kMostMapCorner || reach > kMostMapCorner)
      return std::nullopt;
  }
  if (copies_window_rows(node)) windows.steps[0] = 1, windows.upper[0] = 0;
  return windows;
}

// The map of an image, [N, H, W, C] as it is stored, or [N, H, window, row of the window].
TensorMap map_of_windows(const Node& node) {
  TensorMap map = map_of_stored(0, node.operand_type(0));
  map.windows = windows_of(node);
  if (!copies_window_rows(node)) return map;
  map.extents[0] = window_inner(node);
  map.extents[1] = node.results[0]->type.shape[3];
  map.strides[0] = map.strides[0] * node.attributes<ops::Convolution>().stride[1];
  return map;
}

std::optional<BulkOperands> bulk_matmul(const Node& node, const ProductShape& shape) {
  const TensorType &a = node.operand_type(0), &b = node.operand_type(1);
  if (!shape.b_depth_inner || a.rank() > kMapRank || b.rank() > kMapRank) return std::nullopt;
  return BulkOperands{map_of_stored(0, a), map_of_stored(1, b), storage_position(a.rank() - 2, a),
                      storage_position(b.rank() - 1, b)};
}

void write_box_of_product(std::string_view signature, const Node& node, size_t operand,
                          const ProductShape& shape, TemplateText& out) {
  IndexScope scope = out.scope;
  out.open_function(signature);
  const TensorType& type = node.operand_type(operand);
  std::vector<Dim> index = batch_index_of(node, operand, shape, out, scope);
  const Dim along = TemplateText::named(scope, "first", operand == 0 ? shape.rows : shape.columns);
  const Dim depth = TemplateText::named(scope, "depth", shape.depth);
  index.push_back(operand == 0 ? along : depth);
  index.push_back(operand == 0 ? depth : along);
  out.line("copy_box(to, barrier, map{});\n}}\n", box_coordinates(type, index, scope));
}

void write_box_of_windows(std::string_view signature, const Node& node, const ProductShape& shape,
                          TemplateText& out) {
  const auto convolution = node.attributes<ops::Convolution>();
  IndexScope scope = out.scope;
  out.open_function(signature);
  out.decode(result_extents(node, shape.row_dims), "first", "r", scope);
  const bool rows = copies_window_rows(node);
  const std::string inner = scope.text(window_inner(node)),
                    width = rows ? "1" : scope.text(node.operand_type(1).shape[3]);
  out.line("const idx window = depth / {}, channel = depth % {};\n", inner, inner);
  out.line("copy_window(to, barrier, map, channel, r2 * {} - {}, r1 * {} - {}, r0, ",
           rows ? 1 : convolution.stride[1], convolution.padding[1], convolution.stride[0],
           convolution.padding[0]);
  out.line("window % {} * {}, window / {} * {});\n}}\n", width, convolution.dilation[1], width,
           convolution.dilation[0]);
}

}  // namespace

void write_element_functions(DType dtype, TemplateText& out) {
  out.line("typedef {} Element;\nconstexpr bool kBf16 = {};\nconstexpr int kChunk = {};\n",
           storage_name(dtype), dtype == DType::kBF16, chunk_of(dtype));
  const bool is_float = dtype == DType::kF32;
  out.line("DEVICE f32 load_element(const Element* p) {{ return {}; }}\n",
           is_float ? "*p" : "load_half<kBf16>(p)");
  out.line("DEVICE void store_element(Element* p, f32 value) {{ {}; }}\n", is_float ? "*p = value"
                                                                           : dtype == DType::kBF16
                                                                               ? "store_bf16(p, value)"
                                                                               : "store_f16(p, value)");
  out.line("DEVICE f32 element_of(const Packed& chunk, int k) {{ return {}; }}\n",
           is_float ? "__uint_as_float(chunk.pairs[k])" : "number_of<kBf16>(chunk, k)");
}

void write_a_places(const Node& node, const ProductShape& shape, TemplateText& out) {
  if (node.op == &ops::convolution) return write_window_places(node, shape, out);
  const TensorType& type = node.operand_type(0);
  IndexScope scope = out.scope;
  out.line("struct ASource {{ const Element* place; bool valid; }};\n");
  out.open_function("ASource a_source(const Operands& x, idx batch, idx row, idx depth, bool valid)");
  std::string offset = fmt::format("row * {} + depth", scope.text(shape.depth));
  if (node.op == &ops::matmul) {
    std::vector<Dim> index = batch_index_of(node, 0, shape, out, scope);
    index.push_back(TemplateText::named(scope, "row", shape.rows));
    index.push_back(TemplateText::named(scope, "depth", shape.depth));
    offset = scope.text(storage_offset(type.layout, type.shape, index));
  }
  out.line("return {{valid ? x.a + {} : x.a, valid}};\n}}\n", offset);
  out.line(
      "DEVICE const Element* a_place(const Operands& x, const ASource& from, idx first_depth, int, bool& "
      "valid) {{\n");
  out.line("valid = valid && from.valid;\nreturn from.place + first_depth;\n}}\n");
}

void write_b_places(const Node& node, const ProductShape& shape, TemplateText& out) {
  const TensorType& type = node.operand_type(1);
  IndexScope scope = out.scope;
  out.open_function("const Element* b_place(const Operands& x, idx batch, idx column, idx depth)");
  std::string offset = fmt::format("column * {} + depth", scope.text(shape.depth)), step = "1";
  if (node.op == &ops::matmul) {
    std::vector<Dim> index = batch_index_of(node, 1, shape, out, scope);
    index.push_back(TemplateText::named(scope, "depth", shape.depth));
    index.push_back(TemplateText::named(scope, "column", shape.columns));
    offset = scope.text(storage_offset(type.layout, type.shape, index));
    if (!shape.b_depth_inner) step = scope.text(shape.columns);
  }
  out.line("return x.b + {};\n}}\n", offset);
  out.open_function("idx b_step(const Operands& x)");
  out.line("return {};\n}}\n", step);
}

std::optional<BulkOperands> bulk_operands(const Node& node, const ProductShape& shape) {
  if (node.op == &ops::matmul) return bulk_matmul(node, shape);
  const Dim b_rows = shape.columns;
  BulkOperands operands{map_of_dense(0, {shape.depth, shape.rows}), map_of_dense(1, {shape.depth, b_rows}), 1,
                        1};
  if (node.op != &ops::convolution || is_convolution_of_points(node)) return operands;
  operands.a = map_of_windows(node);
  return operands.a.windows ? std::optional(operands) : std::nullopt;
}

// Columns 8 l + 2 j and the next, j < 4, of every 32 become columns 8 j + 2 l and the next of the product,
// which belong to lane l of four. Dims: depth; of 32 columns the two, l and j; which 32.
TensorMap with_ordered_columns(const TensorMap& b, int columns) {
  const Dim depth = b.extents[0];
  TensorMap map = map_of_dense(b.buffer, {depth, 2, 4, 4, floor_divide(b.extents[1], kOrderedColumns)});
  map.strides = {depth, depth * 8, depth * 2, depth * kOrderedColumns};
  map.box = {kMapInner, 2, 4, 4, columns / kOrderedColumns};
  return map;
}

void write_box_copies(const Node& node, const ProductShape& shape, bool orders_columns, TemplateText& out) {
  const std::string a = box_copy_signature("a"), b = box_copy_signature("b");
  if (node.op == &ops::matmul) {
    write_box_of_product(a, node, 0, shape, out);
    return write_box_of_product(b, node, 1, shape, out);
  }
  if (node.op == &ops::convolution && !is_convolution_of_points(node)) {
    write_box_of_windows(a, node, shape, out);
  } else {
    out.line("DEVICE {} {{ copy_box(to, barrier, map, depth, first); }}\n", a);
  }
  const std::string columns = orders_columns ? fmt::format("0, 0, 0, first / {}", kOrderedColumns) : "first";
  out.line("DEVICE {} {{ copy_box(to, barrier, map, depth, {}); }}\n", b, columns);
}

}  // namespace ingot::core::cuda
