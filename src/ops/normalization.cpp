// SPDX-License-Identifier: Apache-2.0
// Norms over the last dims of x (layer_norm, rms_norm) and over groups of channels, and a linear layer behind
// one.
#include "ops/normalization.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kNormOperands[] = {{"x", DTypeSet::kFloating},
                                     {.name = "weight", .dtypes = DTypeSet::kFloating, .optional = true},
                                     {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true}};
constexpr std::span<const Operand> kScaleOperands = std::span(kNormOperands).first(2);

Types infer_last_dims(const Node& node) {
  const auto axes = node.attributes<Normalization>().axes;
  const Shape& shape = node.operand_type(0).shape;
  require(axes >= 1 && axes <= static_cast<int64_t>(shape.size()), node, "more normalized dims than x has");
  const Shape row(shape.end() - axes, shape.end());
  for (size_t i = 1; i < node.operands.size(); ++i) {
    if (node.has_operand(i)) require_shape(node, i, row);
  }
  return infer_same(node);
}

Index joined(Index a, const Index& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// value * weight + bias at one index, as far as these are present.
Expr scaled(const KernelBuilder& builder, Expr value, size_t weight, size_t bias, const Index& index) {
  const DType dtype = value->dtype;
  if (builder.has(weight)) value = value * loops::convert(dtype, builder.load(weight, index));
  if (builder.has(bias)) value = value + loops::convert(dtype, builder.load(bias, index));
  return value;
}

Expr inverse_deviation(KernelBuilder& builder, const Expr& variance, double epsilon) {
  return builder.scalar("scale", compute(functions::reciprocal_square_root, variance + epsilon));
}

// Mean of `value(index)` over fresh loops of `row`, in the dtype of the value.
template <typename ValueAt>
Expr mean_over(KernelBuilder& builder, std::string name, const Shape& row, const ValueAt& value_at) {
  const StageLoops over = builder.loops(row);
  const Expr sum = builder.reduce(name + "_sum", loops::Combine::kAdd, over, value_at(over.index));
  return builder.scalar(std::move(name), sum / size_value(sum->dtype, core::product(row)));
}

// The mean and 1 / sqrt(variance + epsilon) of a row. A first mean, rounded by the sum, is corrected by the
// mean distance from it: constant rows become 0.
struct Moments {
  Expr mean, scale;
};
template <typename ValueAt>
Moments moments_over(KernelBuilder& builder, const Shape& row, const ValueAt& value, double epsilon) {
  const Expr first = mean_over(builder, "first", row, value);
  const StageLoops shifts = builder.loops(row),
                   squares = builder.loops(row);  // adjacent stages: one pass for both
  const Expr shift_sum =
      builder.reduce("shift_sum", loops::Combine::kAdd, shifts, value(shifts.index) - first);
  const Expr distance = value(squares.index) - first;
  const Expr square_sum = builder.reduce("square_sum", loops::Combine::kAdd, squares, distance * distance);
  const Expr count = size_value(first->dtype, core::product(row)), shift = shift_sum / count;
  // In rows with such large values the rounded shift may have an infinite square too: their difference would
  // be NaN.
  const Expr square = square_sum / count, infinite = infinity(square->dtype);
  const Expr variance =
      loops::select(equal_to(square, infinite), infinite, larger(square - shift * shift, number(first, 0)));
  const Expr scale = inverse_deviation(builder, variance, epsilon);
  return {builder.scalar("mean", first + shift), scale};
}

struct LastDims {
  Shape outer, row;
  explicit LastDims(const Node& node) {
    const Shape& shape = node.operand_type(0).shape;
    const auto split = shape.end() - node.attributes<Normalization>().axes;
    outer.assign(shape.begin(), split);
    row.assign(split, shape.end());
  }
};

loops::Kernel lower_layer_norm(const Node& node) {
  KernelBuilder builder(node);
  const LastDims dims(node);
  const Index outer = builder.parallel(dims.outer);
  const auto value = [&](const Index& inner) { return builder.load(0, joined(outer, inner)); };
  const Moments moments = moments_over(builder, dims.row, value, node.attributes<Normalization>().epsilon);
  const StageLoops out = builder.loops(dims.row);
  const Expr normal = (value(out.index) - moments.mean) * moments.scale;
  builder.store(joined(outer, out.index), scaled(builder, normal, 1, 2, out.index), out);
  return builder.finish();
}

loops::Kernel lower_rms_norm(const Node& node) {
  KernelBuilder builder(node);
  const LastDims dims(node);
  const Index outer = builder.parallel(dims.outer);
  const auto value = [&](const Index& inner) { return builder.load(0, joined(outer, inner)); };
  const auto squared = [&](const Index& inner) { return value(inner) * value(inner); };
  const Expr square = mean_over(builder, "square", dims.row, squared);
  const Expr scale = inverse_deviation(builder, square, node.attributes<Normalization>().epsilon);
  const StageLoops out = builder.loops(dims.row);
  builder.store(joined(outer, out.index), scaled(builder, value(out.index) * scale, 1, 2, out.index), out);
  return builder.finish();
}

Types infer_normalized_linear(const Node& node) {
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  require_rank(node, 1, 2);
  require(x.rank() >= 1 && x.shape.back() == weight.shape[1], node,
          "x and weight have different inner sizes");
  require(x.dtype == weight.dtype, node, "x and weight have different dtypes");
  for (const size_t i : {kNormalizedBias, kNormalizedSums}) {
    if (node.has_operand(i)) require_shape(node, i, {weight.shape[0]});
  }
  Shape row(x.shape.begin(), x.shape.end() - 1), shape = row;
  row.push_back(1);
  for (const size_t i : {kNormalizedMean, kNormalizedScale}) {
    if (node.has_operand(i)) require_shape(node, i, row);
  }
  require(!node.has_operand(kNormalizedMean) ||
              (node.has_operand(kNormalizedScale) && node.has_operand(kNormalizedSums)),
          node, "a mean needs the sums of the weight and a scale");
  shape.push_back(weight.shape[0]);
  return {{x.dtype, std::move(shape), {}}};
}

// Given, or of the row.
Moments moments_of_rows(KernelBuilder& builder, const Node& node, const Index& outer) {
  const auto given = [&](size_t operand) -> Expr {
    return builder.has(operand) ? builder.load(operand, joined(outer, {Dim(0)})) : nullptr;
  };
  if (builder.has(kNormalizedScale)) return {given(kNormalizedMean), given(kNormalizedScale)};
  const Shape row{node.operand_type(0).shape.back()};
  const double epsilon = node.attributes<NormalizedLinear>().epsilon;
  const auto value = [&](const Index& inner) { return builder.load(0, joined(outer, inner)); };
  if (builder.has(kNormalizedSums)) return moments_over(builder, row, value, epsilon);
  const auto squared = [&](const Index& inner) { return value(inner) * value(inner); };
  return {nullptr, inverse_deviation(builder, mean_over(builder, "square", row, squared), epsilon)};
}

loops::Kernel lower_normalized_linear(const Node& node) {
  KernelBuilder builder(node);
  const Index index = builder.parallel(node.results[0]->type.shape);
  const Index outer(index.begin(), index.end() - 1), column{index.back()};
  const Moments moments = moments_of_rows(builder, node, outer);
  const StageLoops inner = builder.loops({node.operand_type(0).shape.back()});
  Expr sum = builder.reduce(
      "sum", loops::Combine::kAdd, inner,
      builder.load(0, joined(outer, inner.index)) * builder.load(1, {index.back(), inner.index[0]}));
  const auto of_sum = [&](const Expr& value) { return loops::convert(sum->dtype, value); };
  if (moments.mean != nullptr)
    sum = sum - of_sum(moments.mean) * of_sum(builder.load(kNormalizedSums, column));
  sum = sum * of_sum(moments.scale);
  builder.store(index, builder.has(kNormalizedBias) ? sum + builder.load(kNormalizedBias, column) : sum);
  return builder.finish();
}
Samples normalized_linear_samples() {
  return {sample({f32({batch(), length(), 8}), f32({5, 8}), f32({5}), f32({5})}, NormalizedLinear{1e-5}),
          sample({f32({3, 4}), f32({7, 4})}, NormalizedLinear{1e-6}),
          sample({f32({3, 8}), f32({5, 8}), f32({5}), f32({5}), f32({3, 1}), f32({3, 1})},
                 NormalizedLinear{1e-5})};
}

Types infer_channels(const Node& node, size_t first) {
  const Shape& shape = node.operand_type(0).shape;
  require(shape.size() >= 2, node, "x must be [N, C, *]");
  for (size_t i = first; i < node.operands.size(); ++i) {
    if (node.has_operand(i)) require_shape(node, i, {shape[1]});
  }
  return infer_same(node);
}
Types infer_group_norm(const Node& node) {
  Types types = infer_channels(node, 1);
  const auto groups = node.attributes<GroupNorm>().groups;
  const auto channels = node.operand_type(0).shape[1].constant();
  require(channels && groups > 0 && *channels % groups == 0, node,
          "channels must be a multiple of the groups");
  return types;
}
loops::Kernel lower_group_norm(const Node& node) {
  const auto norm = node.attributes<GroupNorm>();
  const Shape& shape = node.operand_type(0).shape;
  KernelBuilder builder(node);
  const Dim channels = core::floor_divide(shape[1], norm.groups);
  const Index outer = builder.parallel({shape[0], norm.groups});
  Shape row(shape.begin() + 1, shape.end());
  row[0] = channels;
  const auto place = [&](Index inner) {
    inner[0] = outer[1] * channels + inner[0];
    return joined({outer[0]}, inner);
  };
  const auto value = [&](const Index& inner) { return builder.load(0, place(inner)); };
  const Moments moments = moments_over(builder, row, value, norm.epsilon);
  const StageLoops out = builder.loops(row);
  const Index at = place(out.index);
  const Expr normal = (value(out.index) - moments.mean) * moments.scale;
  builder.store(at, scaled(builder, normal, 1, 2, {at[1]}), out);
  return builder.finish();
}

Samples layer_norm_samples() {
  return {sample({f32({batch(), length(), 8}), f32({8}), f32({8})}, Normalization{1e-5, 1}),
          sample({f32({3, 2, 5}), f32({2, 5})}, Normalization{1e-6, 2}),
          sample({f32({3, 4})}, Normalization{})};
}
Samples rms_norm_samples() {
  return {sample({f32({batch(), length(), 8}), f32({8})}, Normalization{1e-6, 1}),
          sample({f32({3, 4})}, Normalization{})};
}
Samples group_norm_samples() {
  return {sample({f32({batch(), 6, 3, 3}), f32({6}), f32({6})}, GroupNorm{2, 1e-5}),
          sample({f32({2, 4})}, GroupNorm{4, 1e-5})};
}
}  // namespace

constinit const Op layer_norm = {.name = "layer_norm",
                                 .summary = "x over its last dims to mean 0 and variance 1, arXiv 1607.06450",
                                 .operands = kNormOperands,
                                 .attributes = attribute_schema<Normalization>(),
                                 .traits = Trait::kReduction,
                                 .infer = infer_last_dims,
                                 .lower = lower_layer_norm,
                                 .samples = layer_norm_samples};

constinit const Op rms_norm = {
    .name = "rms_norm",
    .summary = "x over its last dims divided by its root mean square, arXiv 1910.07467",
    .operands = kScaleOperands,
    .attributes = attribute_schema<Normalization>(),
    .traits = Trait::kReduction,
    .infer = infer_last_dims,
    .lower = lower_rms_norm,
    .samples = rms_norm_samples};

constexpr Operand kNormalizedLinearOperands[] = {
    {"x", DTypeSet::kFloating},
    {"weight", DTypeSet::kFloating},
    {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true},
    {.name = "sums", .dtypes = DTypeSet::kFloating, .optional = true},
    {.name = "mean", .dtypes = DTypeSet::kFloating, .optional = true},
    {.name = "scale", .dtypes = DTypeSet::kFloating, .optional = true}};

constinit const Op normalized_linear = {
    .name = "normalized_linear",
    .summary =
        "a linear layer of x / rms(x), or where the sums of its weight's rows are given of (x - mean(x)) / "
        "deviation(x); scale and shift of the norm are in weight and bias",
    .operands = kNormalizedLinearOperands,
    .attributes = attribute_schema<NormalizedLinear>(),
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_normalized_linear,
    .lower = lower_normalized_linear,
    .samples = normalized_linear_samples};

constinit const Op group_norm = {
    .name = "group_norm",
    .summary = "x [N, C, *] normalized over each group of channels, arXiv 1803.08494",
    .operands = kNormOperands,
    .attributes = attribute_schema<GroupNorm>(),
    .traits = Trait::kReduction,
    .infer = infer_group_norm,
    .lower = lower_group_norm,
    .samples = group_norm_samples};

}  // namespace ingot::core::ops
