// SPDX-License-Identifier: Apache-2.0
// Elementwise ops that choose, bound or convert.
#include <cmath>

#include "ops/elementwise.h"
#include "ops/ops.h"
#include "ops/select.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSelectOperands[] = {
    {"condition", DTypeSet::kBool}, {"then", DTypeSet::kAny}, {"otherwise", DTypeSet::kAny}};

Types infer_select(const Node& node) {
  if (node.operand_type(1).dtype != node.operand_type(2).dtype)
    fail(node, "both branches must have the same dtype");
  const Shape shape = broadcast_shapes(node, node.operand_type(1).shape, node.operand_type(2).shape);
  return {{node.operand_type(1).dtype, broadcast_shapes(node, node.operand_type(0).shape, shape), {}}};
}
loops::Kernel lower_select(const Node& node) {
  return lower_elementwise(
      node, [](const std::vector<Expr>& values) { return loops::select(values[0], values[1], values[2]); });
}
Samples select_samples() {
  return {sample({boolean_tensor({3, 5}), f32({3, 5}), f32({})}),
          sample({boolean_tensor({batch(), 1}), i64({1, 4}), i64({batch(), 4})})};
}

// The bounds come first: where x equals one, x is kept, signed zeros included, as in torch.
Expr clamp_of(const Clamp& clamp, Expr x) {
  if (std::isfinite(clamp.low) || std::isnan(clamp.low)) x = larger(number(x, clamp.low), x);
  if (std::isfinite(clamp.high) || std::isnan(clamp.high)) x = smaller(number(x, clamp.high), x);
  return x;
}
Samples clamp_samples() {
  return {sample({f32({3, 5})}, Clamp{-1, 1}), sample({i64({batch()})}, Clamp{0, INFINITY})};
}

Types infer_convert(const Node& node) {
  return {{node.attributes<Convert>().dtype, node.operand_type(0).shape, {}}};
}
loops::Kernel lower_convert(const Node& node) {
  const DType to = node.attributes<Convert>().dtype;
  return lower_elementwise(node, [&](const std::vector<Expr>& values) {
    return to == DType::kBool ? differs(values[0], number(values[0], 0))
                              : loops::convert(loops::arithmetic_dtype(to), values[0]);
  });
}
Samples convert_samples() {
  return {sample({f32({3, 5}, -9, 9)}, Convert{DType::kI64}), sample({i64({batch()})}, Convert{DType::kF32}),
          sample({boolean_tensor({4})}, Convert{DType::kF32}), sample({f32({4})}, Convert{DType::kBF16}),
          sample({i64({4})}, Convert{DType::kBool})};
}

Types infer_triangle(const Node& node) {
  require(node.operand_type(0).rank() >= 2, node, "x must have at least two dims");
  return infer_same(node);
}
loops::Kernel lower_triangle(const Node& node) {
  const auto triangle = node.attributes<Triangle>();
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.operand_type(0).shape);
  const Expr offset = loops::index_value(index.back() - index[index.size() - 2]);
  const Expr limit = loops::integer_constant(DType::kI64, triangle.diagonal);
  const Expr value = kernel.load(0, index);
  kernel.store(index, loops::select(triangle.upper ? at_least(offset, limit) : at_most(offset, limit), value,
                                    number(value, 0)));
  return kernel.finish();
}
Samples triangle_samples() {
  return {sample({f32({4, 5})}, Triangle{}), sample({i64({2, length(), length()})}, Triangle{1, true})};
}

}  // namespace

constinit const Op select = {.name = "select",
                             .summary = "`then` where the condition holds, `otherwise` elsewhere",
                             .operands = kSelectOperands,
                             .traits = Trait::kElementwise,
                             .infer = infer_select,
                             .lower = lower_select,
                             .samples = select_samples};

constinit const Op clamp = unary_op_with<Clamp, clamp_of>("clamp", "x bounded to [low, high]",
                                                          kNumericOperand, clamp_samples, Trait::kIdempotent);

constinit const Op convert = {.name = "convert",
                              .summary = "x in another dtype; floats truncate to integers, bool is x != 0",
                              .operands = kAnyOperand,
                              .attributes = attribute_schema<Convert>(),
                              .traits = Trait::kElementwise,
                              .infer = infer_convert,
                              .lower = lower_convert,
                              .samples = convert_samples};

constinit const Op triangle = {.name = "triangle",
                               .summary = "x below (or above) a diagonal of its last two dims, 0 elsewhere",
                               .operands = kAnyOperand,
                               .attributes = attribute_schema<Triangle>(),
                               .traits = Trait::kElementwise | Trait::kIdempotent,
                               .infer = infer_triangle,
                               .lower = lower_triangle,
                               .samples = triangle_samples};

}  // namespace ingot::core::ops
