// SPDX-License-Identifier: Apache-2.0
// The products of a mixture of experts: rows that are sorted by expert, each with the weight of its own.
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/narrow_weight.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kGroupedOperands[] = {
    {"x", DTypeSet::kNumeric}, {"weights", DTypeSet::kNumeric}, {"ends", DTypeSet::kIndex}};

Types infer_grouped_linear(const Node& node) {
  const TensorType &x = node.operand_type(0), &weights = node.operand_type(1);
  require_rank(node, 0, 2);
  require_rank(node, 1, 3);
  const bool narrow_weights = x.dtype == DType::kF32 && is_narrow_weight(weights.dtype);
  require(weights.dtype == x.dtype || narrow_weights, node,
          "the weights must have the dtype of x, or beside f32 be bf16, f16, i8, e4m3 or e5m2");
  if (x.shape[1] != weights.shape[2])
    fail(node, "inner sizes of " + to_string(x.shape) + " and " + to_string(weights.shape) + " differ");
  require_shape(node, 2, {weights.shape[0]});
  return {{x.dtype, {x.shape[0], weights.shape[1]}, {}}};
}

// The group of a row is the first that ends behind it; a row without one has zeros.
loops::Kernel lower_grouped_linear(const Node& node) {
  const Shape& weights = node.operand_type(1).shape;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const StageLoops groups = kernel.loops({weights[0]});
  const Expr end = loops::convert(DType::kI64, kernel.load(2, {groups.index[0]}));
  const Expr count = loops::index_value(weights[0]);
  const Expr ends_behind = above(end, loops::index_value(index[0]));
  const Expr group = kernel.reduce("group", loops::Combine::kMinimum, groups,
                                   loops::select(ends_behind, loops::index_value(groups.index[0]), count));
  const Expr has_group = below(group, count);
  const Dim at = kernel.bind(loops::select(has_group, group, number(group, 0)), core::maximum(weights[0], 1));
  const StageLoops inner = kernel.loops({weights[2]});
  const Expr x = kernel.load(0, {index[0], inner.index[0]});
  const Expr weight = loops::convert(x->dtype, kernel.load(1, {at, index[1], inner.index[0]}));
  kernel.store_reduced(index, loops::Combine::kAdd, inner,
                       loops::select(has_group, x * weight, number(x, 0)));
  return kernel.finish();
}

Samples grouped_linear_samples() {
  return {sample({f32({length(), 6}), f32({3, 4, 6}), i64({3}, 0, 5)}),
          sample({f32({5, 3}), f32({2, 7, 3}), tensor(DType::kI32, {2}, -1, 9)}),
          sample({f32({4, 6}), tensor(DType::kBF16, {1, 5, 6}), i64({1}, 2, 2)})};
}

}  // namespace

constinit const Op grouped_linear = {
    .name = "grouped_linear",
    .summary =
        "x [S, K] times the weight of each row's group, of weights [G, N, K], transposed; group g is the "
        "rows before ends[g] and behind the groups before it, and rows behind all groups give zeros",
    .operands = kGroupedOperands,
    .traits = Trait::kContraction | Trait::kReduction | Trait::kNarrowWeight,
    .infer = infer_grouped_linear,
    .lower = lower_grouped_linear,
    .samples = grouped_linear_samples};

}  // namespace ingot::core::ops
