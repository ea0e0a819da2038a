// SPDX-License-Identifier: Apache-2.0
// Convolution with 3x3 windows by 16 products per 2x2 results instead of 36: F(2x2, 3x3) of Lavin and Gray,
// "Fast Algorithms for Convolutional Neural Networks" (2015).
//
// The tile of results is A' ((G g G') * (B' d B)) A, for the window g and the 4x4 image elements d under it:
//   B' = 1  0 -1  0   G = 1    0    0     A' = 1  1  1  0
//        0  1  1  0       1/2  1/2  1/2        0  1 -1 -1
//        0 -1  1  0       1/2 -1/2  1/2
//        0  1  0 -1       0    0    1
// and "*" multiplies elementwise: for each of the 16 positions, a matrix product over the channels.
//
// One infinite element turns whole tiles into NaN, and large ones may overflow on the way: results that are
// not finite are recomputed from the image and the window themselves.
#include <fmt/format.h>

#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/samples.h"
#include "ops/window.h"
#include "ops/winograd.h"

namespace ingot::core::ops {
namespace {

constexpr int64_t kPlaces = 16;
constexpr Operand kImage[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kWindow[] = {{"weight", DTypeSet::kFloating}};
constexpr Operand kProduct[] = {{"x", DTypeSet::kFloating},
                                {"weight", DTypeSet::kFloating},
                                {"image", DTypeSet::kFloating},   // that x was computed from
                                {"window", DTypeSet::kFloating},  // that the weight was computed from
                                {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true}};
constexpr size_t kImageOperand = 2, kWindowOperand = 3, kBiasOperand = 4;

using Row = std::vector<Expr>;

Row times_input_matrix(const Row& d) { return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]}; }
Row times_weight_matrix(const Row& g) {
  return {g[0], (g[0] + g[1] + g[2]) * 0.5, (g[0] - g[1] + g[2]) * 0.5, g[2]};
}

// result[4 * i + j, at...] = (T m T')[i][j], where `times` multiplies a row by T'.
void store_transform(KernelBuilder& kernel, const std::vector<Row>& m, Row (*times)(const Row&),
                     const Index& at) {
  std::vector<Row> columns;
  for (size_t j = 0; j < m.size(); ++j) {
    Row column;
    for (const Row& row : m) column.push_back(row[j]);
    columns.push_back(times(column));
    for (size_t i = 0; i < columns[j].size(); ++i)
      columns[j][i] = kernel.scalar(fmt::format("half{}{}", i, j), columns[j][i]);
  }
  for (int64_t i = 0; i < 4; ++i) {
    Row row;
    for (const Row& column : columns) row.push_back(column[static_cast<size_t>(i)]);
    const Row transformed = times(row);
    for (int64_t j = 0; j < 4; ++j) {
      Index index{4 * i + j};
      index.insert(index.end(), at.begin(), at.end());
      kernel.store(index, transformed[static_cast<size_t>(j)]);
    }
  }
}

// Tiles of 2x2 that cover all results; the last one of a row or column may be partly outside.
Shape tiles_of(const Dim& height, const Dim& width) {
  return {core::ceil_divide(height, 2), core::ceil_divide(width, 2)};
}

Shape tiles_of_input(const Shape& x, const std::vector<int64_t>& padding) {
  return tiles_of(x[2] + 2 * padding[0] - 2, x[3] + 2 * padding[1] - 2);
}

Types infer_input(const Node& node) {
  require_rank(node, 0, 4);
  const TensorType& x = node.operand_type(0);
  const auto padding = node.attributes<WinogradInput>().padding;
  require(padding.size() == 2 && padding[0] >= 0 && padding[1] >= 0, node,
          "the padding needs two entries, not negative");
  const Shape tiles = tiles_of_input(x.shape, padding);
  return {{x.dtype, {kPlaces, x.shape[0] * tiles[0] * tiles[1], x.shape[1]}, {}}};
}

loops::Kernel lower_input(const Node& node) {
  const Shape& x = node.operand_type(0).shape;
  const auto padding = node.attributes<WinogradInput>().padding;
  const Shape tiles = tiles_of_input(x, padding);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel({x[0], tiles[0], tiles[1], x[1]});
  std::vector<Row> window(4);
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      const WindowElement element = window_element(spatial_dims(x), {index[1], index[2]}, {i, j}, {2, 2},
                                                   padding, {1, 1}, /*guarded=*/true);
      const Expr value = kernel.load(0, {index[0], index[3], element.place[0], element.place[1]});
      window[static_cast<size_t>(i)].push_back(
          kernel.scalar(fmt::format("d{}{}", i, j), guarded(element.guard, value, number(value, 0))));
    }
  }
  const Dim tile = (index[0] * tiles[0] + index[1]) * tiles[1] + index[2];
  store_transform(kernel, window, times_input_matrix, {tile, index[3]});
  return kernel.finish();
}

Types infer_weight(const Node& node) {
  const TensorType& weight = node.operand_type(0);
  require(weight.rank() == 4 && weight.shape[2] == Dim(3) && weight.shape[3] == Dim(3), node,
          "the weight must be [K, C, 3, 3]");
  return {{weight.dtype, {kPlaces, weight.shape[0], weight.shape[1]}, {}}};
}

loops::Kernel lower_weight(const Node& node) {
  KernelBuilder kernel(node);
  const Shape& weight = node.operand_type(0).shape;
  const Index index = kernel.parallel({weight[0], weight[1]});
  std::vector<Row> window(3);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 3; ++j)
      window[static_cast<size_t>(i)].push_back(kernel.load(0, {index[0], index[1], i, j}));
  }
  store_transform(kernel, window, times_weight_matrix, index);
  return kernel.finish();
}

Types infer_winograd_convolution(const Node& node) {
  require_same_dtype(node);
  require_rank(node, 0, 3);
  require_rank(node, 1, 3);
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  const auto shape = node.attributes<NewShape>().shape;
  require(shape.size() == 4 && shape[1] == weight.shape[1], node, "the result must be [N, K, H, W]");
  const Shape tiles = tiles_of(shape[2], shape[3]);
  require_shape(node, 0, {kPlaces, shape[0] * tiles[0] * tiles[1], weight.shape[2]});
  require_shape(node, 1, {kPlaces, shape[1], x.shape[2]});
  require_rank(node, kImageOperand, 4);
  const Shape& image = node.operand_type(kImageOperand).shape;
  require_shape(node, kImageOperand, {shape[0], x.shape[2], image[2], image[3]});
  for (size_t dim = 2; dim < 4; ++dim) {
    const auto padding = (shape[dim] - image[dim] + 2).constant();
    require(padding && *padding >= 0 && *padding % 2 == 0, node,
            "the sizes of the result and the image do not match");
  }
  require_shape(node, kWindowOperand, {shape[1], x.shape[2], 3, 3});
  if (node.has_operand(kBiasOperand)) require_shape(node, kBiasOperand, {shape[1]});
  return {{x.dtype, shape, {}}};
}

// Entry [parity][i] of A'.
Expr result_matrix(const Dim& parity, const Dim& i) {
  const Expr row = loops::index_value(parity), column = loops::index_value(i);
  const auto entry = [](double value) { return loops::constant(DType::kF32, value); };
  const Expr even = loops::select(below(column, number(column, 3)), entry(1), entry(0));
  const Expr late = loops::select(equal_to(column, number(column, 1)), entry(1), entry(-1));
  const Expr odd = loops::select(equal_to(column, number(column, 0)), entry(0), late);
  return loops::select(equal_to(row, number(row, 0)), even, odd);
}

// The result itself, by the definition of convolution.
Expr direct_sum(KernelBuilder& kernel, const Node& node, const Index& index) {
  const Shape& result = node.results[0]->type.shape;
  const Shape& image = node.operand_type(kImageOperand).shape;
  const std::vector<int64_t> padding{*(result[2] - image[2] + 2).constant() / 2,
                                     *(result[3] - image[3] + 2).constant() / 2};
  const StageLoops inner = kernel.loops({image[1], 3, 3});
  const WindowElement element =
      window_element(spatial_dims(image), {index[2], index[3]}, {inner.index[1], inner.index[2]}, {1, 1},
                     padding, {1, 1}, /*guarded=*/true);
  const Expr pixel =
      kernel.load(kImageOperand, {index[0], inner.index[0], element.place[0], element.place[1]});
  const Expr factor = kernel.load(kWindowOperand, {index[1], inner.index[0], inner.index[1], inner.index[2]});
  return kernel.reduce("direct", loops::Combine::kAdd, inner,
                       guarded(element.guard, pixel * factor, number(pixel, 0)));
}

loops::Kernel lower_winograd_convolution(const Node& node) {
  const Shape& result = node.results[0]->type.shape;
  const Shape tiles = tiles_of(result[2], result[3]);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(result);
  const StageLoops inner = kernel.loops({kPlaces, node.operand_type(0).shape[2]});
  const Dim &place = inner.index[0], &channel = inner.index[1];
  const Dim row = index[0] * tiles[0] + core::floor_divide(index[2], 2);
  const Dim tile = row * tiles[1] + core::floor_divide(index[3], 2);
  const Expr factor = result_matrix(core::modulo(index[2], 2), core::floor_divide(place, 4)) *
                      result_matrix(core::modulo(index[3], 2), core::modulo(place, 4));
  const Expr product = kernel.load(0, {place, tile, channel}) * kernel.load(1, {place, index[1], channel});
  const Expr sum =
      kernel.reduce("sum", loops::Combine::kAdd, inner, loops::convert(product->dtype, factor) * product);
  const Expr direct = direct_sum(kernel, node, index);
  const Expr is_finite = below(compute(loops::Unary::kAbsolute, sum), infinity(sum->dtype));
  const Expr value = loops::select(is_finite, sum, direct);
  kernel.store(index, kernel.has(kBiasOperand) ? value + kernel.load(kBiasOperand, {index[1]}) : value);
  return kernel.finish();
}

Samples input_samples() {
  return {sample({f32({batch(), 3, 5, 6})}, WinogradInput{{1, 0}}),
          sample({f32({1, 17, 3, 4})}, WinogradInput{{2, 1}})};
}
Samples weight_samples() { return {sample({f32({5, 3, 3, 3})})}; }
Samples winograd_samples() {
  const Dim tiles = batch() * 6;
  return {sample({f32({16, tiles, 3}), f32({16, 5, 3}), f32({batch(), 3, 3, 5}), f32({5, 3, 3, 3}), f32({5})},
                 NewShape{{batch(), 5, 3, 5}}),
          sample({f32({16, 4, 2}), f32({16, 4, 2}), f32({1, 2, 6, 4}), f32({4, 2, 3, 3})},
                 NewShape{{1, 4, 4, 4}})};
}

}  // namespace

constinit const Op winograd_input = {
    .name = "winograd_input",
    .summary = "an image [N, C, H, W] as [16, tiles, C] for winograd_convolution",
    .operands = kImage,
    .attributes = attribute_schema<WinogradInput>(),
    .infer = infer_input,
    .lower = lower_input,
    .samples = input_samples};

constinit const Op winograd_weight = {
    .name = "winograd_weight",
    .summary = "windows [K, C, 3, 3] as [16, K, C] for winograd_convolution",
    .operands = kWindow,
    .infer = infer_weight,
    .lower = lower_weight,
    .samples = weight_samples};

constinit const Op winograd_convolution = {
    .name = "winograd_convolution",
    .summary = "convolution [N, K, H, W] with 3x3 windows, from a transformed image and transformed windows",
    .operands = kProduct,
    .attributes = attribute_schema<NewShape>(),
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_winograd_convolution,
    .lower = lower_winograd_convolution,
    .samples = winograd_samples};

}  // namespace ingot::core::ops
