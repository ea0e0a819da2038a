// SPDX-License-Identifier: Apache-2.0
// Reductions with an attribute of their own: variance, norm, argmax, argmin.
#include <cmath>

#include "ops/ops.h"
#include "ops/reduce_kernel.h"
#include "ops/statistics.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kStatisticsOperands[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kNumericStatisticsOperands[] = {{"x", DTypeSet::kNumeric}};

template <typename Struct>
Types infer_axes(const Node& node) {
  const auto reduce = node.attributes<Struct>();
  require_axes(node, reduce.axes);
  const TensorType& x = node.operand_type(0);
  return {{x.dtype, reduced_shape(x.shape, reduce.axes, reduce.keep_dims), {}}};
}

// f64 represents the square of every f32, and sums of equal f32 values, exactly.
Expr widened(const Expr& x) { return loops::convert(DType::kF64, x); }

// Two passes, to avoid cancellation if the mean is far from 0.
loops::Kernel lower_variance(const Node& node) {
  const auto variance = node.attributes<Variance>();
  ReduceKernel kernel(node, variance.axes, variance.keep_dims);
  const Expr sum = kernel.reduce("sum", loops::Combine::kAdd, widened);
  const Expr count = kernel.count(sum->dtype);
  const Expr mean = kernel.builder.scalar("mean", sum / count);
  const auto square = [&](const Expr& x) { return (widened(x) - mean) * (widened(x) - mean); };
  const Expr squares = kernel.reduce("squares", loops::Combine::kAdd, square);
  const Expr freedom = larger(count - variance.correction, number(count, 0));
  kernel.builder.store(kernel.result_index, squares / freedom);
  return kernel.builder.finish();
}

loops::Kernel lower_norm(const Node& node) {
  const auto norm = node.attributes<Norm>();
  ReduceKernel kernel(node, norm.axes, norm.keep_dims);
  const auto magnitude = [](const Expr& x) { return compute(loops::Unary::kAbsolute, x); };
  Expr result;
  if (std::isinf(norm.order)) {
    result = kernel.reduce("norm", norm.order > 0 ? loops::Combine::kMaximum : loops::Combine::kMinimum,
                           magnitude);
  } else if (norm.order == 2) {
    const auto square = [](const Expr& x) { return widened(x) * widened(x); };
    result = compute(loops::Unary::kSquareRoot, kernel.reduce("squares", loops::Combine::kAdd, square));
  } else if (norm.order == 1) {
    result = kernel.reduce("norm", loops::Combine::kAdd, magnitude);
  } else if (norm.order == 0) {
    const auto counted = [](const Expr& x) { return loops::convert(x->dtype, differs(x, number(x, 0))); };
    result = kernel.reduce("norm", loops::Combine::kAdd, counted);
  } else {
    const auto raised = [&](const Expr& x) {
      const Expr wide = widened(magnitude(x));
      return power_of(wide, number(wide, norm.order));
    };
    const Expr total = kernel.reduce("total", loops::Combine::kAdd, raised);
    result = power_of(total, number(total, 1 / norm.order));
  }
  kernel.builder.store(kernel.result_index, result);
  return kernel.builder.finish();
}

Types infer_arg(const Node& node) {
  const auto arg = node.attributes<ArgReduce>();
  require_axis(node, arg.axis, node.operand_type(0).rank());
  return {{DType::kI64, reduced_shape(node.operand_type(0).shape, {arg.axis}, arg.keep_dims), {}}};
}
// The first index of the extreme; NaN counts as the extreme.
template <loops::Combine kCombine>
loops::Kernel lower_arg(const Node& node) {
  const auto arg = node.attributes<ArgReduce>();
  ReduceKernel kernel(node, {arg.axis}, arg.keep_dims);
  const Expr extreme = kernel.reduce("extreme", kCombine, [](const Expr& x) { return x; });
  const StageLoops row = kernel.loops();
  const Expr x = kernel.load(row);
  const Expr found = either(equal_to(x, extreme), is_not_a_number(x));
  const Expr place =
      loops::select(found, loops::index_value(row.index[0]), loops::index_value(kernel.row()[0]));
  kernel.builder.store_reduced(kernel.result_index, loops::Combine::kMinimum, row, place);
  return kernel.builder.finish();
}

Samples variance_samples() {
  return {sample({f32({3, 5})}, Variance{{1}, false, 1}),
          sample({f32({batch(), 4, length()})}, Variance{{0, 2}, true, 0})};
}
Samples norm_samples() {
  return {sample({f32({3, 5})}, Norm{2, {1}, false}), sample({f32({3, length()})}, Norm{1, {0, 1}, false}),
          sample({f32({4, 3})}, Norm{INFINITY, {0}, true}), sample({f32({4, 3})}, Norm{3, {1}, false}),
          sample({f32({4, 3})}, Norm{0, {1}, false})};
}
Samples arg_samples() {
  return {sample({f32({3, 5})}, ArgReduce{1, false}), sample({i64({batch(), 4}, -2, 2)}, ArgReduce{0, true})};
}

constexpr Op arg_op(std::string_view name, std::string_view summary, loops::Kernel (*lower)(const Node&)) {
  return Op{.name = name,
            .summary = summary,
            .operands = kNumericStatisticsOperands,
            .attributes = attribute_schema<ArgReduce>(),
            .traits = Trait::kReduction,
            .infer = infer_arg,
            .lower = lower,
            .samples = arg_samples};
}

}  // namespace

constinit const Op variance = {.name = "variance",
                               .summary = "mean square distance from the mean, over count - correction",
                               .operands = kStatisticsOperands,
                               .attributes = attribute_schema<Variance>(),
                               .traits = Trait::kReduction,
                               .infer = infer_axes<Variance>,
                               .lower = lower_variance,
                               .samples = variance_samples};

constinit const Op norm = {.name = "norm",
                           .summary = "vector norm of an order over axes",
                           .operands = kStatisticsOperands,
                           .attributes = attribute_schema<Norm>(),
                           .traits = Trait::kReduction,
                           .infer = infer_axes<Norm>,
                           .lower = lower_norm,
                           .samples = norm_samples};

constinit const Op argmax =
    arg_op("argmax", "first index of the maximum along an axis", lower_arg<loops::Combine::kMaximum>);
constinit const Op argmin =
    arg_op("argmin", "first index of the minimum along an axis", lower_arg<loops::Combine::kMinimum>);

}  // namespace ingot::core::ops
