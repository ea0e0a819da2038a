// SPDX-License-Identifier: Apache-2.0
// Matrix products. Backends have kernel templates for them; the Loop IR here is their definition.
#include <algorithm>

#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/narrow_weight.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kMatmulOperands[] = {{"a", DTypeSet::kNumeric}, {"b", DTypeSet::kNumeric}};
constexpr Operand kLinearOperands[] = {{"x", DTypeSet::kNumeric},
                                       {"weight", DTypeSet::kNumeric},
                                       {.name = "bias", .dtypes = DTypeSet::kNumeric, .optional = true}};

Shape leading(const Shape& shape, size_t dropped) {
  return Shape(shape.begin(), shape.end() - static_cast<ptrdiff_t>(dropped));
}

// Index of a batched matrix operand for a batch index of the result.
Index batch_index(const Shape& own, const Shape& batch, const Index& index) {
  Index at;
  for (size_t i = 0; i + 2 < own.size(); ++i) {
    const size_t aligned = batch.size() + 2 - own.size() + i;
    at.push_back(own[i] == Dim(1) ? Dim(0) : index[aligned]);
  }
  return at;
}

Types infer_matmul_shape(const Node& node) {
  const TensorType &a = node.operand_type(0), &b = node.operand_type(1);
  require(a.rank() >= 2 && b.rank() >= 2, node, "operands must be matrices or batches of them");
  if (a.shape.back() != b.shape[b.rank() - 2])
    fail(node, "inner sizes of " + to_string(a.shape) + " and " + to_string(b.shape) + " differ");
  Shape shape = broadcast_shapes(node, leading(a.shape, 2), leading(b.shape, 2));
  shape.push_back(a.shape[a.rank() - 2]);
  shape.push_back(b.shape.back());
  return {{a.dtype, std::move(shape), {}}};
}
Types infer_matmul(const Node& node) {
  require_same_dtype(node);
  return infer_matmul_shape(node);
}
loops::Kernel lower_matmul(const Node& node) {
  const Shape &a = node.operand_type(0).shape, &b = node.operand_type(1).shape;
  KernelBuilder kernel(node);
  const Shape& shape = node.results[0]->type.shape;
  const Index index = kernel.parallel(shape);
  const StageLoops inner = kernel.loops({a.back()});
  const Shape batch = leading(shape, 2);
  Index at_a = batch_index(a, batch, index), at_b = batch_index(b, batch, index);
  at_a.insert(at_a.end(), {index[index.size() - 2], inner.index[0]});
  at_b.insert(at_b.end(), {inner.index[0], index.back()});
  const DType sum = node.results[0]->type.dtype;
  const auto factor = [&](size_t operand, const Index& at) {
    const Expr loaded = kernel.load(operand, at);
    return is_integer(sum) ? loops::convert(sum, loaded) : loaded;
  };
  kernel.store_reduced(index, loops::Combine::kAdd, inner, factor(0, at_a) * factor(1, at_b));
  return kernel.finish();
}
Samples matmul_samples() {
  return {sample({f32({3, 4}), f32({4, 5})}), sample({f32({batch(), 1, 3, 4}), f32({2, 4, 5})}),
          sample({i64({2, 3}), i64({3, 2})})};
}

Types infer_linear_shape(const Node& node) {
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  require_rank(node, 1, 2);
  require(x.rank() >= 1, node, "operand 0 must have at least one dim");
  if (x.shape.back() != weight.shape[1])
    fail(node, "inner sizes of " + to_string(x.shape) + " and " + to_string(weight.shape) + " differ");
  Shape shape = leading(x.shape, 1);
  shape.push_back(weight.shape[0]);
  return {{x.dtype, std::move(shape), {}}};
}
Types infer_linear(const Node& node) {
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  const bool narrow_weight = x.dtype == DType::kF32 && is_narrow_weight(weight.dtype);
  require(weight.dtype == x.dtype || narrow_weight, node,
          "the weight must have the dtype of x, or beside f32 be bf16, f16, i8, e4m3 or e5m2");
  require(!node.has_operand(2) || node.operand_type(2).dtype == x.dtype, node,
          "the bias must have the dtype of x");
  Types types = infer_linear_shape(node);
  if (node.has_operand(2)) require_shape(node, 2, {weight.shape[0]});
  return types;
}
loops::Kernel lower_linear(const Node& node) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const StageLoops inner = kernel.loops({node.operand_type(0).shape.back()});
  Index at = leading(index, 1);
  at.push_back(inner.index[0]);
  const Expr x = kernel.load(0, at), weight = kernel.load(1, {index.back(), inner.index[0]});
  const Expr product = x * loops::convert(x->dtype, weight);
  if (!kernel.has(2)) {
    kernel.store_reduced(index, loops::Combine::kAdd, inner, product);
    return kernel.finish();
  }
  const Expr sum = kernel.reduce("sum", loops::Combine::kAdd, inner, product);
  kernel.store(index, sum + kernel.load(2, {index.back()}));
  return kernel.finish();
}
constexpr Operand kByteOperands[] = {{"x", DTypeSet::kNumeric}, {"weight", DTypeSet::kNumeric}};
Types infer_integer_linear(const Node& node) {
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  require(x.dtype == DType::kU8 || x.dtype == DType::kI8, node, "x must be u8 or i8");
  require(weight.dtype == DType::kI8, node, "the weight must be i8");
  Types types = infer_linear_shape(node);
  types[0].dtype = DType::kI32;
  return types;
}
loops::Kernel lower_integer_linear(const Node& node) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const StageLoops inner = kernel.loops({node.operand_type(0).shape.back()});
  Index at = leading(index, 1);
  at.push_back(inner.index[0]);
  const Expr x = loops::convert(DType::kI32, kernel.load(0, at));
  const Expr weight = loops::convert(DType::kI32, kernel.load(1, {index.back(), inner.index[0]}));
  kernel.store_reduced(index, loops::Combine::kAdd, inner, x * weight);
  return kernel.finish();
}
SampleOperand bytes(DType dtype, Shape shape) {
  return tensor(dtype, std::move(shape), dtype == DType::kU8 ? 0 : -128, dtype == DType::kU8 ? 255 : 127);
}
Types infer_integer_matmul(const Node& node) {
  const DType a = node.operand_type(0).dtype;
  require(a == DType::kU8 || a == DType::kI8, node, "a must be u8 or i8");
  require(node.operand_type(1).dtype == DType::kI8, node, "b must be i8");
  Types types = infer_matmul_shape(node);
  types[0].dtype = DType::kI32;
  return types;
}
Samples integer_matmul_samples() {
  return {sample({bytes(DType::kU8, {batch(), 3, 8}), bytes(DType::kI8, {2, 1, 8, 5})}),
          sample({bytes(DType::kI8, {3, length()}), bytes(DType::kI8, {length(), 4})})};
}
Samples integer_linear_samples() {
  return {sample({bytes(DType::kU8, {batch(), length(), 8}), bytes(DType::kI8, {4, 8})}),
          sample({bytes(DType::kI8, {3, 5}), bytes(DType::kI8, {7, 5})})};
}

Samples linear_samples() {
  return {sample({f32({batch(), length(), 6}), f32({4, 6}), f32({4})}),
          sample({f32({3, 5}), f32({7, 5})}),
          sample({f32({5}), f32({2, 5}), f32({2})}),
          sample({f32({3, 6}), tensor(DType::kI8, {4, 6}), f32({4})}),
          sample({f32({3, 6}), tensor(DType::kBF16, {4, 6})}),
          sample({f32({3, 6}), tensor(DType::kE4M3, {4, 6})}),
          sample({f32({3, 6}), tensor(DType::kE5M2, {4, 6})})};
}

}  // namespace

constinit const Op matmul = {.name = "matmul",
                             .summary = "[*, M, K] times [*, K, N], batch dims broadcast",
                             .operands = kMatmulOperands,
                             .traits = Trait::kContraction | Trait::kReduction,
                             .infer = infer_matmul,
                             .lower = lower_matmul,
                             .samples = matmul_samples};

constinit const Op linear = {.name = "linear",
                             .summary =
                                 "x [*, K] times weight [N, K] transposed, plus bias [N]; the weight may "
                                 "be narrower than x",
                             .operands = kLinearOperands,
                             .traits = Trait::kContraction | Trait::kReduction | Trait::kNarrowWeight,
                             .infer = infer_linear,
                             .lower = lower_linear,
                             .samples = linear_samples};

constinit const Op integer_linear = {
    .name = "integer_linear",
    .summary = "x [*, K] of u8 or i8 times weight [N, K] of i8 transposed, with sums in i32",
    .operands = kByteOperands,
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_integer_linear,
    .lower = lower_integer_linear,
    .samples = integer_linear_samples};

constinit const Op integer_matmul = {
    .name = "integer_matmul",
    .summary = "a [*, M, K] of u8 or i8 times b [*, K, N] of i8, batch dims broadcast, with sums in i32",
    .operands = kMatmulOperands,
    .traits = Trait::kContraction | Trait::kReduction,
    .infer = infer_integer_matmul,
    .lower = lower_matmul,
    .samples = integer_matmul_samples};

}  // namespace ingot::core::ops
