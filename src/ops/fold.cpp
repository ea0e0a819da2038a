// SPDX-License-Identifier: Apache-2.0
// The second half of a transposed convolution: a product has computed one value per element of x, tap of the
// window and channel; each result element adds the values that overlap in it.
#include "ops/fold.h"
#include "ops/samples.h"
#include "ops/window.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kFoldOperands[] = {{"x", DTypeSet::kNumeric},
                                     {.name = "bias", .dtypes = DTypeSet::kFloating, .optional = true}};

int64_t taps(const Fold& fold) {
  int64_t count = 1;
  for (const int64_t size : fold.kernel) count *= size;
  return count;
}

void require_fold(const Node& node, const Fold& fold) {
  const size_t spatial = fold.kernel.size();
  require_same_dtype(node);
  require(spatial >= 1 && node.operand_type(0).rank() == spatial + 2 && fold.size.size() == spatial, node,
          "x must be [N, C, *spatial], one kernel entry and one size per spatial dim");
  require_window_attributes(node, spatial, fold.stride, fold.padding, std::vector<int64_t>(spatial, 1));
  for (const int64_t size : fold.kernel)
    require(size >= 1 && size <= 4096, node, "kernel sizes are 1 to 4096");
  require(fold.groups >= 1 && fold.groups <= 1 << 24, node, "the number of groups must be 1 to 2^24");
}

Types infer_fold(const Node& node) {
  const auto fold = node.attributes<Fold>();
  require_fold(node, fold);
  TensorType type = node.operand_type(0);
  const auto channels = type.shape[1].constant();
  const int64_t windows = taps(fold) * fold.groups;
  require(channels && *channels % windows == 0, node, "channels must be a multiple of groups times taps");
  type.shape[1] = Dim(*channels / taps(fold));
  if (node.has_operand(1)) require_shape(node, 1, {type.shape[1]});
  for (size_t i = 0; i < fold.size.size(); ++i) type.shape[i + 2] = fold.size[i];
  type.layout = {};
  return {type};
}

// Along one dim: position + padding = element * stride + tap; the taps of one position are `stride` apart.
loops::Kernel lower_fold(const Node& node) {
  const auto fold = node.attributes<Fold>();
  const Shape& x = node.operand_type(0).shape;
  KernelBuilder kernel(node);
  const Shape& shape = node.results[0]->type.shape;
  const Index index = kernel.parallel(shape);
  Shape meeting;
  for (size_t i = 0; i < fold.kernel.size(); ++i)
    meeting.push_back((fold.kernel[i] + fold.stride[i] - 1) / fold.stride[i]);
  const StageLoops inner = kernel.loops(meeting);
  const Dim group_channels = core::floor_divide(shape[1], fold.groups);
  Dim tap = fold.groups == 1 ? Dim(0) : core::floor_divide(index[1], group_channels);
  Index at{index[0], Dim(0)};
  Expr guard;  // null: each element has a window
  for (size_t i = 0; i < fold.kernel.size(); ++i) {
    const Dim reach = index[i + 2] + Dim(fold.padding[i]);
    const Dim offset = core::modulo(reach, fold.stride[i]) + inner.index[i] * Dim(fold.stride[i]);
    const Dim element = core::floor_divide(reach, fold.stride[i]) - inner.index[i];
    if (!fills_result(fold, x, i)) {
      Expr meets = inside(element, 0, x[i + 2]);
      if (fold.kernel[i] % fold.stride[i] != 0)
        meets = both(meets, below(loops::index_value(offset), loops::index_value(Dim(fold.kernel[i]))));
      guard = guard ? both(guard, meets) : meets;
    }
    tap = tap * Dim(fold.kernel[i]) + offset;
    at.push_back(element);
  }
  const Dim channel = fold.groups == 1 ? index[1] : core::modulo(index[1], group_channels);
  at[1] = tap * group_channels + channel;
  const Expr value = kernel.load(0, at);
  const Expr sum = kernel.reduce("sum", loops::Combine::kAdd, inner,
                                 guard ? loops::select(guard, value, number(value, 0)) : value);
  kernel.store(index, kernel.has(1) ? sum + kernel.load(1, {index[1]}) : sum);
  return kernel.finish();
}

Samples fold_samples() {
  return {sample({f32({batch(), 18, 3, 4}), f32({2})}, Fold{{3, 3}, {2, 2}, {1, 0}, {6, 9}, 1}),
          sample({f32({1, 16, 5})}, Fold{{4}, {2}, {1}, {10}, 2}),
          sample({tensor(DType::kU8, {batch(), 18, 2, 3}, 0, 250)}, Fold{{3, 2}, {3, 2}, {0, 0}, {6, 6}, 1}),
          sample({f32({1, 4, length(), 2})}, Fold{{2, 2}, {2, 2}, {0, 0}, {length() * 2, 4}, 1})};
}

}  // namespace

bool fills_result(const Fold& fold, const Shape& x, size_t i) {
  return fold.kernel[i] == fold.stride[i] && fold.padding[i] == 0 &&
         fold.size[i] == x[i + 2] * Dim(fold.stride[i]);
}

constinit const Op fold = {.name = "fold",
                           .summary = "adds the windows that overlap in each element: torch's col2im",
                           .operands = kFoldOperands,
                           .attributes = attribute_schema<Fold>(),
                           .traits = Trait::kReduction,
                           .infer = infer_fold,
                           .lower = lower_fold,
                           .samples = fold_samples};

}  // namespace ingot::core::ops
