// SPDX-License-Identifier: Apache-2.0
// Views that join or pad: concat, pad, roll.
#include <algorithm>
#include <utility>

#include "ops/axis.h"
#include "ops/concat.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kConcatOperands[] = {{"x", DTypeSet::kAny}};
constexpr Operand kVariadic[] = {{.name = "x", .dtypes = DTypeSet::kAny, .variadic = true}};

Types infer_concat(const Node& node) {
  require(!node.operands.empty(), node, "there are no operands to join");
  require_same_dtype(node);
  TensorType type = infer_same(node)[0];
  const auto axis = node.attributes<Axis>().axis;
  require_axis(node, axis, type.rank());
  Dim& size = type.shape[static_cast<size_t>(axis)];
  for (size_t i = 1; i < node.operands.size(); ++i) {
    Shape shape = node.operand_type(i).shape;
    require_rank(node, i, type.rank());
    const Dim more = std::exchange(shape[static_cast<size_t>(axis)], size);
    if (shape != type.shape)
      fail(node, "shapes " + to_string(node.operand_type(0).shape) + " and " +
                     to_string(node.operand_type(i).shape) + " differ in other dims than the joined axis");
    size = size + more;
  }
  return {type};
}
loops::Kernel lower_concat(const Node& node) {
  const auto axis = static_cast<size_t>(node.attributes<Axis>().axis);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  std::vector<Dim> starts{0};
  for (size_t i = 0; i < node.operands.size(); ++i)
    starts.push_back(starts.back() + node.operand_type(i).shape[axis]);
  Expr value;
  for (size_t i = node.operands.size(); i-- > 0;) {
    Index at = index;
    // The only element of a part is read without a guard, wherever the result's element comes from.
    const bool is_single = node.operand_type(i).shape[axis] == Dim(1);
    at[axis] = is_single ? Dim(0) : index[axis] - starts[i];
    const Expr element = kernel.load(i, at);
    value = value ? loops::select(below(loops::index_value(index[axis]), loops::index_value(starts[i + 1])),
                                  element, value)
                  : element;
  }
  kernel.store(index, value);
  return kernel.finish();
}
Samples concat_samples() {
  return {sample({f32({2, 3}), f32({2, 1}), f32({2, 4})}, Axis{1}),
          sample({i64({batch(), 2}), i64({length(), 2})}, Axis{0}), sample({f32({3})}, Axis{0})};
}

// Whether a dim of `size` has the elements that are repeated; unknown sizes are accepted. Reflecting skips
// the outermost one.
bool has_for_padding(const std::string& mode, const Dim& size, const Dim& padding) {
  const auto elements = size.constant(), wanted = padding.constant();
  if (mode == "constant" || !elements || !wanted || *wanted == 0) return true;
  if (mode == "replicate") return *elements > 0;
  return mode == "reflect" ? *wanted < *elements : *wanted <= *elements;
}
// Low and high entries count elements before and after, one per dim; not negative.
Types infer_pad(const Node& node) {
  const auto pad = node.attributes<Pad>();
  TensorType type = infer_same(node)[0];
  require(pad.low.size() == type.rank() && pad.high.size() == type.rank(), node,
          "low and high must have one entry per dim");
  for (size_t i = 0; i < type.rank(); ++i) {
    const Dim size = type.shape[i];
    for (const Dim& padding : {pad.low[i], pad.high[i]}) {
      require(padding.constant().value_or(0) >= 0, node, "a padding must not be negative");
      require(has_for_padding(pad.mode, size, padding), node,
              "the dim has too few elements for this padding");
    }
    type.shape[i] = size + pad.low[i] + pad.high[i];
  }
  static constexpr std::string_view kModes[] = {"constant", "reflect", "replicate", "circular"};
  if (std::ranges::find(kModes, pad.mode) == std::end(kModes))
    fail(node, "there is no padding mode '" + pad.mode + "'");
  return {type};
}
// Maps an index that may be outside of a dim of `size` into it.
Dim inner_index(const std::string& mode, const Dim& index, const Dim& size) {
  if (mode == "circular") return core::modulo(index, size);
  if (mode == "replicate") return core::maximum(0, core::minimum(index, size - 1));
  const Dim mirrored = core::maximum(index, Dim(0) - index);  // |index|
  return core::minimum(mirrored, 2 * (size - 1) - mirrored);
}
loops::Kernel lower_pad(const Node& node) {
  const auto pad = node.attributes<Pad>();
  const Shape& shape = node.operand_type(0).shape;
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  Index at;
  Expr guard;
  for (size_t i = 0; i < index.size(); ++i) {
    at.push_back(index[i] - pad.low[i]);
    if (pad.low[i] == Dim(0) && pad.high[i] == Dim(0)) continue;
    if (pad.mode != "constant") {
      at[i] = inner_index(pad.mode, at[i], shape[i]);
      continue;
    }
    const Expr within = inside(at[i], 0, shape[i]);
    guard = guard ? both(guard, within) : within;
  }
  const Expr value = kernel.load(0, at);
  kernel.store(index, guard ? loops::select(guard, value, number(value, pad.value)) : value);
  return kernel.finish();
}
Samples pad_samples() {
  return {sample({f32({3, 4})}, Pad{{1, 0}, {0, 2}, 1.5, "constant"}),
          sample({f32({2, length() + 3})}, Pad{{0, 2}, {0, 1}, 0, "reflect"}),
          sample({f32({2, 3})}, Pad{{1, 1}, {1, 1}, 0, "replicate"}),
          sample({i64({5})}, Pad{{2}, {3}, 0, "circular"})};
}

Types infer_roll(const Node& node) {
  require_axis(node, node.attributes<Roll>().axis, node.operand_type(0).rank());
  return infer_same(node);
}
// Two runs of x, the last `shift` elements first: each is read in its own order, without a remainder.
loops::Kernel lower_roll(const Node& node) {
  const auto roll = node.attributes<Roll>();
  const auto axis = static_cast<size_t>(roll.axis);
  const Dim size = node.operand_type(0).shape[axis];
  const Dim first = core::modulo(roll.shift, core::maximum(size, 1));
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  Index front = index, back = index;
  front[axis] = index[axis] + size - first;
  back[axis] = index[axis] - first;
  const Expr is_front = below(loops::index_value(index[axis]), loops::index_value(first));
  kernel.store(index, loops::select(is_front, kernel.load(0, front), kernel.load(0, back)));
  return kernel.finish();
}
Samples roll_samples() {
  return {sample({f32({3, 5})}, Roll{1, 2}), sample({i64({length(), 2})}, Roll{0, -1})};
}

}  // namespace

constinit const Op concat = {.name = "concat",
                             .summary = "tensors joined along an axis",
                             .operands = kVariadic,
                             .attributes = attribute_schema<Axis>(),
                             .traits = Trait::kView,
                             .infer = infer_concat,
                             .lower = lower_concat,
                             .samples = concat_samples};

constinit const Op pad = {
    .name = "pad",
    .summary = "x surrounded by a constant, or by its own elements: reflected, edge-replicated or circular",
    .operands = kConcatOperands,
    .attributes = attribute_schema<Pad>(),
    .traits = Trait::kView,
    .infer = infer_pad,
    .lower = lower_pad,
    .samples = pad_samples};

constinit const Op roll = {.name = "roll",
                           .summary = "x rotated along an axis",
                           .operands = kConcatOperands,
                           .attributes = attribute_schema<Roll>(),
                           .traits = Trait::kView,
                           .infer = infer_roll,
                           .lower = lower_roll,
                           .samples = roll_samples};

}  // namespace ingot::core::ops
