// SPDX-License-Identifier: Apache-2.0
// What needs a routine: sorting, and additions that may meet in one place.
#include "ops/attributes.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kOperands[] = {{"x", DTypeSet::kAny}};
constexpr Operand kScatterOperands[] = {
    {"x", DTypeSet::kNumeric}, {"indices", DTypeSet::kIndex}, {"source", DTypeSet::kNumeric}};

Types infer_sort(const Node& node) {
  const TensorType type = infer_same(node)[0];
  require_axis(node, node.attributes<Sort>().axis, type.rank());
  return {type, {DType::kI64, type.shape, {}}};
}
Types infer_top_k(const Node& node) {
  const auto top = node.attributes<TopK>();
  TensorType type = infer_same(node)[0];
  require_axis(node, top.axis, type.rank());
  Dim& size = type.shape[static_cast<size_t>(top.axis)];
  if (size.is_constant() && (top.count < 0 || top.count > *size.constant()))
    fail(node, "there are fewer than " + std::to_string(top.count) + " elements");
  size = top.count;
  return {type, {DType::kI64, type.shape, {}}};
}
Types infer_scatter_add(const Node& node) {
  const TensorType type = infer_same(node)[0];
  require_axis(node, node.attributes<Axis>().axis, type.rank());
  require(node.operand_type(2).dtype == type.dtype, node, "the source must have the dtype of x");
  require_rank(node, 1, type.rank());
  require_shape(node, 2, node.operand_type(1).shape);
  return {type};
}

Samples sort_samples() {
  return {sample({f32({3, 5})}, Sort{1, false}), sample({i64({length(), 2})}, Sort{0, true})};
}
Samples top_k_samples() {
  return {sample({f32({3, 7})}, TopK{1, 3, true}), sample({i64({6, 2})}, TopK{0, 2, false})};
}
Samples scatter_add_samples() { return {sample({f32({3, 5}), i64({3, 8}, 0, 4), f32({3, 8})}, Axis{1})}; }

}  // namespace

constinit const Op sort = {
    .name = "sort",
    .summary = "x sorted along an axis, and where each element was; stable, NaN is the largest",
    .operands = kOperands,
    .attributes = attribute_schema<Sort>(),
    .infer = infer_sort,
    .routine = "sort",
    .samples = sort_samples};
constinit const Op top_k = {
    .name = "top_k",
    .summary = "the largest (or smallest) elements along an axis, sorted, and where they were",
    .operands = kOperands,
    .attributes = attribute_schema<TopK>(),
    .infer = infer_top_k,
    .routine = "top_k",
    .samples = top_k_samples};
constinit const Op scatter_add = {
    .name = "scatter_add",
    .summary = "x with one element of the source added an index; several may meet in one place",
    .operands = kScatterOperands,
    .attributes = attribute_schema<Axis>(),
    .infer = infer_scatter_add,
    .routine = "scatter_add",
    .samples = scatter_add_samples};

}  // namespace ingot::core::ops
