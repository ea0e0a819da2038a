// SPDX-License-Identifier: Apache-2.0
// Reductions over any axes; sums accumulate in f32 or better.
#include "ops/reduce_kernel.h"

#include <algorithm>

#include "ops/ops.h"
#include "ops/reduce.h"

namespace ingot::core::ops {

void require_axes(const Node& node, const std::vector<int64_t>& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    require_axis(node, axes[i], node.operand_type(0).rank());
    require(i == 0 || axes[i] > axes[i - 1], node, "axes must be sorted and unique");
  }
}

ReduceKernel::ReduceKernel(const Node& node, const std::vector<int64_t>& axes, bool keep_dims)
    : builder(node), axes_(axes) {
  const Shape& shape = node.operand_type(0).shape;
  const Index outer = builder.parallel(reduced_shape(shape, axes, false));
  for (size_t i = 0, next = 0; i < shape.size(); ++i) {
    const bool reduced = is_reduced(i);
    if (reduced) row_.push_back(shape[i]);
    if (!reduced) result_index.push_back(outer[next]);
    if (reduced && keep_dims) result_index.push_back(0);
    place_.push_back(reduced ? Dim(0) : outer[next++]);
  }
}

bool ReduceKernel::is_reduced(size_t dim) const {
  return std::ranges::find(axes_, static_cast<int64_t>(dim)) != axes_.end();
}

Expr ReduceKernel::load(const StageLoops& row) const {
  Index index = place_;
  for (size_t i = 0, next = 0; i < index.size(); ++i) {
    if (is_reduced(i)) index[i] = row.index[next++];
  }
  return builder.load(0, index);
}

Expr ReduceKernel::reduce(std::string name, loops::Combine combine,
                          const std::function<Expr(const Expr&)>& value) {
  const StageLoops row = loops();
  return builder.reduce(std::move(name), combine, row, value(load(row)));
}

Expr ReduceKernel::count(DType dtype) const { return size_value(dtype, core::product(row_)); }

namespace {

Types infer_reduce(const Node& node) {
  const auto reduce = node.attributes<Reduce>();
  require_axes(node, reduce.axes);
  const TensorType& x = node.operand_type(0);
  return {{x.dtype, reduced_shape(x.shape, reduce.axes, reduce.keep_dims), {}}};
}

template <loops::Combine kCombine>
loops::Kernel lower_simple(const Node& node) {
  const auto reduce = node.attributes<Reduce>();
  ReduceKernel kernel(node, reduce.axes, reduce.keep_dims);
  const StageLoops row = kernel.loops();
  kernel.builder.store_reduced(kernel.result_index, kCombine, row, kernel.load(row));
  return kernel.builder.finish();
}

loops::Kernel lower_mean(const Node& node) {
  const auto reduce = node.attributes<Reduce>();
  ReduceKernel kernel(node, reduce.axes, reduce.keep_dims);
  const Expr sum = kernel.reduce("sum", loops::Combine::kAdd, [](const Expr& x) { return x; });
  kernel.builder.store(kernel.result_index, sum / kernel.count(sum->dtype));
  return kernel.builder.finish();
}

// log of the sum of exp(x), shifted by the largest x; infinite x are not shifted, since inf - inf is NaN.
loops::Kernel lower_log_sum_exp(const Node& node) {
  const auto reduce = node.attributes<Reduce>();
  ReduceKernel kernel(node, reduce.axes, reduce.keep_dims);
  const Expr largest = kernel.reduce("largest", loops::Combine::kMaximum, [](const Expr& x) { return x; });
  const Expr is_infinite = equal_to(compute(loops::Unary::kAbsolute, largest), infinity(largest->dtype));
  const Expr shift = kernel.builder.scalar("shift", loops::select(is_infinite, number(largest, 0), largest));
  const Expr total = kernel.reduce("total", loops::Combine::kAdd,
                                   [&](const Expr& x) { return compute(functions::exp, x - shift); });
  kernel.builder.store(kernel.result_index, compute(functions::log, total) + shift);
  return kernel.builder.finish();
}

constexpr Operand kBoolReduceOperand[] = {{"x", DTypeSet::kBool}};
constexpr Operand kFloatingReduceOperand[] = {{"x", DTypeSet::kFloating}};
constexpr Operand kNumericReduceOperand[] = {{"x", DTypeSet::kNumeric}};

Samples reduce_samples() {
  return {sample({f32({2, 3, 4})}, Reduce{{2}, false}),
          sample({f32({batch(), 3, length()})}, Reduce{{0, 2}, true}),
          sample({f32({5})}, Reduce{{0}, false})};
}
Samples bool_samples() { return {sample({boolean_tensor({batch(), 4})}, Reduce{{1}, false})}; }

constexpr Op reduce_op(std::string_view name, std::string_view summary, loops::Kernel (*lower)(const Node&),
                       std::span<const Operand> operands = kNumericReduceOperand,
                       Samples (*samples)() = reduce_samples) {
  return Op{.name = name,
            .summary = summary,
            .operands = operands,
            .attributes = attribute_schema<Reduce>(),
            .traits = Trait::kReduction,
            .infer = infer_reduce,
            .lower = lower,
            .samples = samples};
}

}  // namespace

constinit const Op sum = reduce_op("sum", "sum over axes", lower_simple<loops::Combine::kAdd>);
constinit const Op product =
    reduce_op("product", "product over axes", lower_simple<loops::Combine::kMultiply>);
constinit const Op reduce_maximum = reduce_op("reduce_maximum", "maximum over axes, NaN if any element is",
                                              lower_simple<loops::Combine::kMaximum>);
constinit const Op reduce_minimum = reduce_op("reduce_minimum", "minimum over axes, NaN if any element is",
                                              lower_simple<loops::Combine::kMinimum>);
constinit const Op all = reduce_op("all", "whether x holds everywhere along axes",
                                   lower_simple<loops::Combine::kAnd>, kBoolReduceOperand, bool_samples);
constinit const Op any = reduce_op("any", "whether x holds anywhere along axes",
                                   lower_simple<loops::Combine::kOr>, kBoolReduceOperand, bool_samples);
constinit const Op mean = reduce_op("mean", "average over axes", lower_mean, kFloatingReduceOperand);
constinit const Op log_sum_exp = reduce_op("log_sum_exp", "logarithm of the sum of exp(x) over axes",
                                           lower_log_sum_exp, kFloatingReduceOperand);

}  // namespace ingot::core::ops
