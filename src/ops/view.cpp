// SPDX-License-Identifier: Apache-2.0
// Views that rearrange dims: transpose, expand, slice, flip, relayout.
#include "ops/view.h"
#include "ops/indexing.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/samples.h"
#include "types/layout_rules.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kViewOperands[] = {{"x", DTypeSet::kAny}};

Types infer_transpose(const Node& node) {
  const auto order = node.attributes<Permutation>().order;
  const TensorType& x = node.operand_type(0);
  require(order.size() == x.rank(), node, "the order must list every dim");
  std::vector<bool> seen(x.rank());
  Shape shape;
  for (const int64_t axis : order) {
    require_axis(node, axis, x.rank());
    require(!seen[static_cast<size_t>(axis)], node, "the order lists a dim twice");
    seen[static_cast<size_t>(axis)] = true;
    shape.push_back(x.shape[static_cast<size_t>(axis)]);
  }
  return {{x.dtype, std::move(shape), {}}};
}
loops::Kernel lower_transpose(const Node& node) {
  const auto order = node.attributes<Permutation>().order;
  return lower_view(node, [&](const Index& index) {
    Index at(index.size());
    for (size_t i = 0; i < order.size(); ++i) at[static_cast<size_t>(order[i])] = index[i];
    return at;
  });
}
Samples transpose_samples() {
  return {sample({f32({2, 3, 4})}, Permutation{{2, 0, 1}}), sample({i64({batch(), 5})}, Permutation{{1, 0}})};
}

Types infer_expand(const Node& node) {
  const Shape shape = node.attributes<NewShape>().shape;
  if (!broadcasts_to(node.operand_type(0).shape, shape))
    fail(node, to_string(node.operand_type(0).shape) + " does not expand to " + to_string(shape));
  return {{node.operand_type(0).dtype, shape, {}}};
}
loops::Kernel lower_expand(const Node& node) {
  return lower_elementwise(node, [](const std::vector<Expr>& values) { return values[0]; });
}
Samples expand_samples() {
  return {sample({f32({3, 1})}, NewShape{{2, 3, 4}}), sample({f32({1, 4})}, NewShape{{batch(), 4}})};
}

Types infer_slice(const Node& node) {
  return {{node.operand_type(0).dtype, sliced_shape(node, node.attributes<Slice>()), {}}};
}
loops::Kernel lower_slice(const Node& node) {
  const auto slice = node.attributes<Slice>();
  return lower_view(node, [&](Index index) {
    Dim& at = index[static_cast<size_t>(slice.axis)];
    at = slice.start + at * Dim(slice.step);
    return index;
  });
}
Samples slice_samples() {
  return {sample({f32({3, 7})}, Slice{1, 1, 6, 2}),
          sample({f32({length() + 1, 2})}, Slice{0, 1, length() + 1, 1})};
}

Types infer_flip(const Node& node) {
  for (const int64_t axis : node.attributes<Axes>().axes)
    require_axis(node, axis, node.operand_type(0).rank());
  return infer_same(node);
}
loops::Kernel lower_flip(const Node& node) {
  return lower_view(node, [&](Index index) {
    for (const int64_t axis : node.attributes<Axes>().axes) {
      const auto i = static_cast<size_t>(axis);
      index[i] = node.operand_type(0).shape[i] - 1 - index[i];
    }
    return index;
  });
}
Samples flip_samples() {
  return {sample({f32({3, 4})}, Axes{{0, 1}}), sample({f32({length(), 2})}, Axes{{0}})};
}

Types infer_relayout(const Node& node) {
  TensorType type = infer_same(node)[0];
  type.layout = node.attributes<Relayout>().layout;
  require(is_bijection(type.layout, type.rank()), node, "the layout must store each element once");
  return {type};
}
loops::Kernel lower_relayout(const Node& node) {
  return lower_view(node, [](const Index& index) { return index; });
}
Samples relayout_samples() {
  constexpr int kChannelsLast[] = {0, 2, 3, 1};
  return {sample({f32({1, 4, 2, 3})}, Relayout{Layout::permutation(kChannelsLast)})};
}

constexpr Op view_op(std::string_view name, std::string_view summary, AttributeSchema attributes,
                     Types (*infer)(const Node&), loops::Kernel (*lower)(const Node&), Samples (*samples)()) {
  return Op{.name = name,
            .summary = summary,
            .operands = kViewOperands,
            .attributes = attributes,
            .traits = Trait::kView,
            .infer = infer,
            .lower = lower,
            .samples = samples};
}

}  // namespace

constinit const Op expand = view_op("expand", "x broadcast to a shape, aligned at the right",
                                    attribute_schema<NewShape>(), infer_expand, lower_expand, expand_samples);
constinit const Op flip = view_op("flip", "x reversed along the axes", attribute_schema<Axes>(), infer_flip,
                                  lower_flip, flip_samples);
constinit const Op relayout =
    view_op("relayout", "the same tensor in another layout", attribute_schema<Relayout>(), infer_relayout,
            lower_relayout, relayout_samples);
constinit const Op slice = view_op("slice", "every step-th index from start to end of an axis",
                                   attribute_schema<Slice>(), infer_slice, lower_slice, slice_samples);
constinit const Op transpose = view_op("transpose", "dims in another order", attribute_schema<Permutation>(),
                                       infer_transpose, lower_transpose, transpose_samples);

}  // namespace ingot::core::ops
