// SPDX-License-Identifier: Apache-2.0
// Writes into a tensor: the result is operand 0 with some elements replaced. The kernels store only those;
// the caller provides a result that contains operand 0 (the same buffer, or a copy).
#include "ops/axis.h"
#include "ops/index.h"
#include "ops/indexing.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"
#include "ops/view.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSliceOperands[] = {{"x", DTypeSet::kAny}, {"source", DTypeSet::kAny}};
constexpr Operand kIndexedOperands[] = {
    {"x", DTypeSet::kAny}, {"indices", DTypeSet::kIndex}, {"source", DTypeSet::kAny}};
constexpr Operand kPutOperands[] = {{"x", DTypeSet::kAny},
                                    {"source", DTypeSet::kAny},
                                    {.name = "indices", .dtypes = DTypeSet::kIndex, .variadic = true}};

void require_source_dtype(const Node& node, size_t source) {
  require(node.operand_type(source).dtype == node.operand_type(0).dtype, node,
          "the source must have the dtype of x");
}

Types infer_slice_scatter(const Node& node) {
  require_source_dtype(node, 1);
  require_shape(node, 1, sliced_shape(node, node.attributes<Slice>()));
  return infer_same(node);
}
loops::Kernel lower_slice_scatter(const Node& node) {
  const auto slice = node.attributes<Slice>();
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.operand_type(1).shape);
  Index at = index;
  Dim& place = at[static_cast<size_t>(slice.axis)];
  place = slice.start + place * Dim(slice.step);
  kernel.store(at, kernel.load(1, index));
  return kernel.finish();
}
Samples slice_scatter_samples() {
  return {sample({f32({3, 7}), f32({3, 3})}, Slice{1, 1, 6, 2}),
          sample({f32({batch() + 2, 4}), f32({batch(), 4})}, Slice{0, 1, batch() + 1, 1})};
}

Types infer_index_copy(const Node& node) {
  const auto axis = node.attributes<Axis>().axis;
  require_source_dtype(node, 2);
  const TensorType type = infer_same(node)[0];
  require_axis(node, axis, type.rank());
  require_rank(node, 1, 1);
  require_places(node, axis, node.operand_type(1).shape);
  Shape shape = type.shape;
  shape[static_cast<size_t>(axis)] = node.operand_type(1).shape[0];
  require_shape(node, 2, shape);
  return {type};
}
loops::Kernel lower_index_copy(const Node& node) {
  const auto axis = static_cast<size_t>(node.attributes<Axis>().axis);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.operand_type(2).shape);
  Index at = index;
  at[axis] = kernel.bind(kernel.load(1, {index[axis]}), node.operand_type(0).shape[axis]);
  kernel.store(at, kernel.load(2, index));
  return kernel.finish();
}
Samples index_copy_samples() {
  return {sample({f32({2, 6, 3}), i64({1}, 0, 5), f32({2, 1, 3})}, Axis{1}),
          sample({f32({length(), 3}), i64({1}, 0, 0), f32({1, 3})}, Axis{0})};
}

Types infer_scatter(const Node& node) {
  require_source_dtype(node, 2);
  require_indices_along(node, node.attributes<Axis>().axis);
  require_shape(node, 2, node.operand_type(1).shape);
  return infer_same(node);
}
loops::Kernel lower_scatter(const Node& node) {
  const auto axis = static_cast<size_t>(node.attributes<Axis>().axis);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.operand_type(1).shape);
  Index at = index;
  at[axis] = kernel.bind(kernel.load(1, index), node.operand_type(0).shape[axis]);
  kernel.store(at, kernel.load(2, index));
  return kernel.finish();
}
Samples scatter_samples() { return {sample({f32({3, 5}), i64({3, 1}, 0, 4), f32({3, 1})}, Axis{1})}; }

Types infer_index_put(const Node& node) {
  require_source_dtype(node, 1);
  require_shape(node, 1, indexed_shape(node, node.attributes<IndexedAxes>().axes, 2));
  return infer_same(node);
}
loops::Kernel lower_index_put(const Node& node) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.operand_type(1).shape);
  const Expr value = kernel.load(1, index);
  kernel.store(
      indexed_place(kernel, node, node.attributes<IndexedAxes>().axes, indices_shape(node, 2), index, 2),
      value);
  return kernel.finish();
}
Samples index_put_samples() {
  return {sample({f32({4, 5, 3}), f32({1, 3}), i64({1}, -4, 3), i64({1}, 0, 4)}, IndexedAxes{{0, 1}}),
          sample({f32({batch(), 5}), f32({batch(), 1}), i64({1}, 0, 4)}, IndexedAxes{{1}})};
}

constexpr Op in_place_op(std::string_view name, std::string_view summary, std::span<const Operand> operands,
                         AttributeSchema attributes, Types (*infer)(const Node&),
                         loops::Kernel (*lower)(const Node&), Samples (*samples)()) {
  return Op{.name = name,
            .summary = summary,
            .operands = operands,
            .attributes = attributes,
            .traits = Trait::kInPlace,
            .infer = infer,
            .lower = lower,
            .samples = samples};
}

}  // namespace

constinit const Op index_copy =
    in_place_op("index_copy", "x with slices along an axis replaced, one per index", kIndexedOperands,
                attribute_schema<Axis>(), infer_index_copy, lower_index_copy, index_copy_samples);
constinit const Op index_put = in_place_op(
    "index_put", "x with x[i, :, j] replaced; indices count from the end if negative", kPutOperands,
    attribute_schema<IndexedAxes>(), infer_index_put, lower_index_put, index_put_samples);
constinit const Op scatter =
    in_place_op("scatter", "x with one element per index replaced along an axis", kIndexedOperands,
                attribute_schema<Axis>(), infer_scatter, lower_scatter, scatter_samples);
constinit const Op slice_scatter =
    in_place_op("slice_scatter", "x with a slice replaced", kSliceOperands, attribute_schema<Slice>(),
                infer_slice_scatter, lower_slice_scatter, slice_scatter_samples);

}  // namespace ingot::core::ops
