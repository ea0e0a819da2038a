// SPDX-License-Identifier: Apache-2.0
// Affine quantization: an integer q stands for the number (q - zero_point) * scale. Scales and zero points
// broadcast to the tensor: without dims for all of it, [C, 1, 1] for each channel of an image.
#include "ops/quantize.h"

#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kQuantizeOperands[] = {
    {"x", DTypeSet::kFloating},
    {"inverse_scale", DTypeSet::kFloating},
    {.name = "zero_point", .dtypes = DTypeSet::kInteger, .optional = true}};
constexpr Operand kDequantizeOperands[] = {
    {"x", DTypeSet::kInteger},
    {"scale", DTypeSet::kFloating},
    {.name = "zero_point", .dtypes = DTypeSet::kInteger, .optional = true}};

void require_parameters(const Node& node) {
  const Shape& shape = node.operand_type(0).shape;
  require(node.operand_type(1).dtype == DType::kF32, node, "scales must be f32");
  require(!node.has_operand(2) || node.operand_type(2).dtype == DType::kI32, node, "zero points must be i32");
  for (size_t i = 1; i < node.operands.size(); ++i) {
    require(!node.has_operand(i) || broadcasts_to(node.operand_type(i).shape, shape), node,
            "scales and zero points must broadcast to the shape of x");
  }
}

Types infer_quantize(const Node& node) {
  require_parameters(node);
  require(node.operand_type(0).dtype == DType::kF32, node, "x must be f32");
  const auto quantize = node.attributes<Quantize>();
  require(is_integer(quantize.dtype), node, "a tensor is quantized to integers");
  require(quantize.minimum <= quantize.maximum, node, "the smallest number exceeds the largest");
  return {{quantize.dtype, node.operand_type(0).shape, {}}};
}
// Numbers beyond the range become the nearest in it, NaN the smallest. They are limited before they are
// rounded: what is known to fit i32 needs no more than one instruction for both. By way of i32: processors
// convert vectors of it.
loops::Kernel lower_quantize(const Node& node) {
  return lower_elementwise(node, [&](const std::vector<Expr>& values) {
    const auto quantize = node.attributes<Quantize>();
    const Expr scaled = values[0] * values[1];
    const Expr zero_point = values.size() > 2 ? values[2] : nullptr;
    const auto end = [&](int64_t number_at_end) {
      const Expr number_of_end = number(scaled, static_cast<double>(number_at_end));
      return zero_point ? number_of_end - loops::convert(DType::kF32, zero_point) : number_of_end;
    };
    const Expr low = end(quantize.minimum);
    const Expr raised = loops::select(above(scaled, low), scaled, low);
    const Expr limited = loops::select(below(raised, end(quantize.maximum)), raised, end(quantize.maximum));
    const Expr rounded = loops::convert(DType::kI32, compute(loops::Unary::kRoundEven, limited));
    return loops::convert(quantize.dtype, zero_point ? rounded + zero_point : rounded);
  });
}

Types infer_dequantize(const Node& node) {
  require_parameters(node);
  return {{DType::kF32, node.operand_type(0).shape, {}}};
}
loops::Kernel lower_dequantize(const Node& node) {
  return lower_elementwise(node, [](const std::vector<Expr>& values) {
    Expr centered = loops::convert(DType::kF32, values[0]);
    if (values.size() > 2 && values[2]) centered = centered - loops::convert(DType::kF32, values[2]);
    return centered * values[1];
  });
}

SampleOperand zero_points(Shape shape) { return tensor(DType::kI32, std::move(shape), -5, 5); }
Samples quantize_samples() {
  return {sample({f32({batch(), 5}), f32({}, 1, 20), zero_points({})}, Quantize{}),
          sample({f32({3, 4, 5}), f32({4, 1}, 1, 90), zero_points({4, 1})}, Quantize{DType::kI8, -127, 127}),
          sample({f32({6}), f32({}, 1, 20)}, Quantize{DType::kI8, -128, 127})};
}
Samples dequantize_samples() {
  return {sample({tensor(DType::kU8, {batch(), 5}, 0, 255), f32({}, 0, 1), zero_points({})}),
          sample({tensor(DType::kI8, {3, 4, 5}, -128, 127), f32({4, 1}, 0, 1), zero_points({4, 1})}),
          sample({tensor(DType::kI8, {6, 2}, -128, 127), f32({6, 1}, 0, 1)})};
}

}  // namespace

constinit const Op quantize = {
    .name = "quantize",
    .summary = "x times inverse_scale, rounded to even, plus zero_point, limited to a range of integers",
    .operands = kQuantizeOperands,
    .attributes = attribute_schema<Quantize>(),
    .traits = Trait::kElementwise,
    .infer = infer_quantize,
    .lower = lower_quantize,
    .samples = quantize_samples};

constinit const Op dequantize = {.name = "dequantize",
                                 .summary = "(x - zero_point) times scale, in f32",
                                 .operands = kDequantizeOperands,
                                 .traits = Trait::kElementwise,
                                 .infer = infer_dequantize,
                                 .lower = lower_dequantize,
                                 .samples = dequantize_samples};

}  // namespace ingot::core::ops
