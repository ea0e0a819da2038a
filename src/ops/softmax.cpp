// SPDX-License-Identifier: Apache-2.0
// Softmax and similar operators along one axis; accumulation is in f32 or better.
#include "ops/axis.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSoftmaxOperands[] = {{"x", DTypeSet::kFloating}};

Types infer_along_axis(const Node& node) {
  require_axis(node, node.attributes<Axis>().axis, node.operand_type(0).rank());
  return infer_same(node);
}

// A kernel that is parallel over all dims but one.
struct RowKernel {
  explicit RowKernel(const Node& node)
      : builder(node), axis(static_cast<size_t>(node.attributes<Axis>().axis)) {
    const Shape& shape = node.operand_type(0).shape;
    Shape outer = shape;
    outer.erase(outer.begin() + static_cast<ptrdiff_t>(axis));
    outer_index = builder.parallel(outer);
    extent = shape[axis];
  }
  StageLoops row() { return builder.loops({extent}); }
  Index at(const StageLoops& row) const {
    Index index = outer_index;
    index.insert(index.begin() + static_cast<ptrdiff_t>(axis), row.index[0]);
    return index;
  }
  KernelBuilder builder;
  size_t axis;
  Index outer_index;
  Dim extent;
};

loops::Kernel lower_softmax(const Node& node) {
  RowKernel kernel(node);
  KernelBuilder& builder = kernel.builder;
  const StageLoops scan = kernel.row(), map = kernel.row(), sum = kernel.row(), out = kernel.row();
  const Expr largest =
      builder.reduce("largest", loops::Combine::kMaximum, scan, builder.load(0, kernel.at(scan)));
  const Expr shifted = builder.load(0, kernel.at(map)) - largest;
  const int powers = builder.row("powers", map, compute(functions::exp, shifted));
  const Expr total = builder.reduce("total", loops::Combine::kAdd, sum, builder.local(powers, sum.index));
  const Expr scale = builder.scalar("scale", 1.0 / total);  // one division per row
  builder.store(kernel.at(out), builder.local(powers, out.index) * scale, out);
  return builder.finish();
}

loops::Kernel lower_log_softmax(const Node& node) {
  RowKernel kernel(node);
  KernelBuilder& builder = kernel.builder;
  const StageLoops scan = kernel.row(), sum = kernel.row(), out = kernel.row();
  const Expr largest =
      builder.reduce("largest", loops::Combine::kMaximum, scan, builder.load(0, kernel.at(scan)));
  const Expr power = compute(functions::exp, builder.load(0, kernel.at(sum)) - largest);
  const Expr total = builder.reduce("total", loops::Combine::kAdd, sum, power);
  const Expr shift = builder.scalar("shift", compute(functions::log, total));
  builder.store(kernel.at(out), builder.load(0, kernel.at(out)) - largest - shift, out);
  return builder.finish();
}

Samples axis_samples() {
  return {sample({f32({2, 3, 7}, -8, 8)}, Axis{2}), sample({f32({batch(), length(), 4})}, Axis{1})};
}

constexpr Op row_op(std::string_view name, std::string_view summary, loops::Kernel (*lower)(const Node&)) {
  return Op{.name = name,
            .summary = summary,
            .operands = kSoftmaxOperands,
            .attributes = attribute_schema<Axis>(),
            .traits = Trait::kReduction,
            .infer = infer_along_axis,
            .lower = lower,
            .samples = axis_samples};
}

template <loops::Combine kCombine>
loops::Kernel lower_cumulative(const Node& node) {
  RowKernel kernel(node);
  const StageLoops row = kernel.row();
  kernel.builder.store_scan(kernel.at(row), kCombine, row, kernel.builder.load(0, kernel.at(row)));
  return kernel.builder.finish();
}
constexpr Operand kNumericOperands[] = {{"x", DTypeSet::kNumeric}};
constexpr Op cumulative_op(std::string_view name, std::string_view summary,
                           loops::Kernel (*lower)(const Node&)) {
  Op op = row_op(name, summary, lower);
  op.operands = kNumericOperands;
  return op;
}

}  // namespace

constinit const Op softmax = row_op("softmax", "exp(x) along an axis, divided by its sum", lower_softmax);
constinit const Op log_softmax = row_op("log_softmax", "log(softmax(x)) along an axis", lower_log_softmax);
constinit const Op cumulative_sum =
    cumulative_op("cumulative_sum", "running sums along an axis", lower_cumulative<loops::Combine::kAdd>);
constinit const Op cumulative_product = cumulative_op("cumulative_product", "running products along an axis",
                                                      lower_cumulative<loops::Combine::kMultiply>);
constinit const Op cumulative_maximum = cumulative_op("cumulative_maximum", "running maximum along an axis",
                                                      lower_cumulative<loops::Combine::kMaximum>);
constinit const Op cumulative_minimum = cumulative_op("cumulative_minimum", "running minimum along an axis",
                                                      lower_cumulative<loops::Combine::kMinimum>);

}  // namespace ingot::core::ops
