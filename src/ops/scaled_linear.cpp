// SPDX-License-Identifier: Apache-2.0
// A linear layer whose weight has a scale, and maybe a zero point, for each block of its depth.
#include "ops/scaled_linear.h"

#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/narrow_weight.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kScaledOperands[] = {
    {"x", DTypeSet::kFloating},
    {"weight", DTypeSet::kNumeric},
    {"scales", DTypeSet::kFloating},
    {.name = "zero_points", .dtypes = DTypeSet::kNumeric, .optional = true}};
constexpr int kPerByte = 2;

bool is_packed(const Node& node) { return node.attributes<ScaledLinear>().packed; }

// Elements of the depth that share a scale.
std::optional<int64_t> block_of(const TensorType& x, const TensorType& scales) {
  const auto depth = x.shape.back().constant(), blocks = scales.shape[1].constant();
  if (!depth || !blocks || *blocks == 0 || *depth == 0 || *depth % *blocks != 0) return std::nullopt;
  return *depth / *blocks;
}

Types infer_scaled_linear(const Node& node) {
  const TensorType &x = node.operand_type(kScaledX), &weight = node.operand_type(kScaledWeight),
                   &scales = node.operand_type(kScales);
  require_rank(node, kScaledWeight, 2);
  require_rank(node, kScales, 2);
  require(x.rank() >= 1, node, "operand 0 must have at least one dim");
  require(x.dtype == DType::kF32, node, "x must be f32");
  const bool is_byte = is_integer(weight.dtype) && bit_width(weight.dtype) == 8;
  require(is_packed(node) ? weight.dtype == DType::kU8 : is_byte || is_narrow_weight(weight.dtype), node,
          "the weight must be u8 if it is packed, else of 16 bits or fewer");
  const Dim depth = is_packed(node) ? weight.shape[1] * Dim(kPerByte) : weight.shape[1];
  if (x.shape.back() != depth)
    fail(node, "inner sizes of " + to_string(x.shape) + " and " + to_string(weight.shape) + " differ");
  require(scales.shape[0] == weight.shape[0] && block_of(x, scales), node,
          "scales must have a row for each row of the weight, and divide a constant depth into equal blocks");
  if (node.has_operand(kZeroPoints)) require_shape(node, kZeroPoints, scales.shape);
  Shape shape(x.shape.begin(), x.shape.end() - 1);
  shape.push_back(weight.shape[0]);
  return {{DType::kF32, std::move(shape), {}}};
}

// Element [row, k] of the weight, as f32.
Expr weight_at(const KernelBuilder& kernel, const Node& node, const Dim& row, const Dim& k) {
  if (!is_packed(node)) return loops::convert(DType::kF32, kernel.load(kScaledWeight, {row, k}));
  const Expr byte =
      loops::convert(DType::kI32, kernel.load(kScaledWeight, {row, core::floor_divide(k, kPerByte)}));
  const Expr shift = loops::convert(DType::kI32, loops::index_value(core::modulo(k, kPerByte) * Dim(4)));
  const Expr shifted = loops::binary(loops::Binary::kShiftRight, byte, shift);
  return loops::convert(
      DType::kF32, loops::binary(loops::Binary::kAnd, shifted, loops::integer_constant(DType::kI32, 15)));
}

loops::Kernel lower_scaled_linear(const Node& node) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const StageLoops inner = kernel.loops({node.operand_type(kScaledX).shape.back()});
  const Dim &k = inner.index[0], row = index.back();
  Index at(index.begin(), index.end() - 1);
  at.push_back(k);
  const Index block{
      row, core::floor_divide(k, *block_of(node.operand_type(kScaledX), node.operand_type(kScales)))};
  Expr weight = weight_at(kernel, node, row, k);
  if (const int64_t offset = node.attributes<ScaledLinear>().offset; offset != 0)
    weight = weight - number(weight, static_cast<double>(offset));
  if (kernel.has(kZeroPoints)) weight = weight - loops::convert(DType::kF32, kernel.load(kZeroPoints, block));
  const Expr scale = loops::convert(DType::kF32, kernel.load(kScales, block));
  kernel.store_reduced(index, loops::Combine::kAdd, inner, kernel.load(kScaledX, at) * (weight * scale));
  return kernel.finish();
}

Samples scaled_linear_samples() {
  const SampleOperand nibbles = tensor(DType::kU8, {5, 32}, 0, 255);
  const SampleOperand zeros = tensor(DType::kI8, {5, 2}, 0, 15);
  return {sample({f32({batch(), length(), 64}), nibbles, f32({5, 2}), zeros}, ScaledLinear{true}),
          sample({f32({3, 64}), nibbles, tensor(DType::kBF16, {5, 4})}, ScaledLinear{true, 8}),
          sample({f32({64}), tensor(DType::kI8, {7, 64}), f32({7, 1}), f32({7, 1})}, ScaledLinear{}),
          sample({f32({2, 96}), tensor(DType::kE4M3, {3, 96}), f32({3, 3})}, ScaledLinear{})};
}

}  // namespace

constinit const Op scaled_linear = {
    .name = "scaled_linear",
    .summary =
        "x [*, K] times the transpose of (weight [N, K] - offset - zero_points [N, G]) * scales [N, G], "
        "with K / G adjacent elements of the depth per scale",
    .operands = kScaledOperands,
    .attributes = attribute_schema<ScaledLinear>(),
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_scaled_linear,
    .lower = lower_scaled_linear,
    .samples = scaled_linear_samples};

}  // namespace ingot::core::ops
