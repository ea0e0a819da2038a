// SPDX-License-Identifier: Apache-2.0
// Operators that require a routine: sorting, and additions with repeated indices.
#include <algorithm>

#include "ops/axis.h"
#include "ops/indexing.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"
#include "ops/sort.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kSortOperands[] = {{"x", DTypeSet::kAny}};
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
    fail(node, "x has fewer than " + std::to_string(top.count) + " elements");
  size = top.count;
  return {type, {DType::kI64, type.shape, {}}};
}
// One element per line, and its index.
Types infer_selected(const Node& node, int64_t axis) {
  TensorType type = infer_same(node)[0];
  require_axis(node, axis, type.rank());
  type.shape[static_cast<size_t>(axis)] = 1;
  return {type, {DType::kI64, type.shape, {}}};
}
Types infer_median(const Node& node) { return infer_selected(node, node.attributes<Axis>().axis); }
Types infer_kth_value(const Node& node) {
  const auto kth = node.attributes<KthValue>();
  const Types types = infer_selected(node, kth.axis);
  const auto size = node.operand_type(0).shape[static_cast<size_t>(kth.axis)].constant();
  if (kth.rank < 0 || (size && kth.rank >= *size))
    fail(node, "x has no element of rank " + std::to_string(kth.rank));
  return types;
}
template <typename Struct>
Types infer_scatter_along(const Node& node) {
  require_indices_along(node, node.attributes<Struct>().axis);
  require(node.operand_type(2).dtype == node.operand_type(0).dtype, node,
          "the source must have the dtype of x");
  const auto axis = static_cast<size_t>(node.attributes<Struct>().axis);
  Shape expected = node.operand_type(1).shape;  // an index tensor of size 1 in another dim is broadcast
  const Shape& source = node.operand_type(2).shape;
  for (size_t i = 0; i < std::min(expected.size(), source.size()); ++i) {
    const auto most = node.operand_type(0).shape[i].constant(), size = source[i].constant();
    require(i == axis || !most || !size || *size <= *most, node, "the source is larger than x");
    if (i != axis && expected[i] == Dim(1)) expected[i] = source[i];
  }
  require_shape(node, 2, expected);
  return infer_same(node);
}

Samples sort_samples() {
  return {sample({f32({3, 5})}, Sort{1, false}), sample({i64({length(), 2})}, Sort{0, true})};
}
Samples top_k_samples() {
  return {sample({f32({3, 7})}, TopK{1, 3, true}), sample({i64({6, 2})}, TopK{0, 2, false})};
}
Samples median_samples() { return {sample({f32({3, 8})}, Axis{1}), sample({i64({length(), 2})}, Axis{0})}; }
Samples kth_value_samples() {
  return {sample({f32({3, 7})}, KthValue{1, 2}), sample({i64({6, batch()})}, KthValue{0, 5})};
}
Types infer_scatter_reduce(const Node& node) {
  constexpr std::string_view kKnown[] = {"sum", "prod", "mean", "amax", "amin"};
  const std::string reduce = node.attributes<ScatterReduce>().reduce;
  require(std::ranges::find(kKnown, reduce) != std::end(kKnown), node,
          "the reduction must be sum, prod, mean, amax or amin");
  return infer_scatter_along<ScatterReduce>(node);
}

Samples scatter_reduce_samples() {
  const std::vector<SampleOperand> floats{f32({3, 5}), i64({3, 8}, 0, 4), f32({3, 8})};
  return {sample(floats, ScatterReduce{1, "mean", true}), sample(floats, ScatterReduce{1, "amax", false}),
          sample({i64({batch(), 4}), i64({batch(), 2}, 0, 3), i64({batch(), 2})},
                 ScatterReduce{1, "prod", true})};
}
Samples scatter_add_samples() {
  return {sample({f32({3, 5}), i64({3, 8}, 0, 4), f32({3, 8})}, Axis{1}),
          sample({f32({5, 2, 9}), i64({4, 1, 1}, 0, 4), f32({4, 2, 9})}, Axis{0}),
          sample({f32({2, batch(), 7}), i64({2, batch(), 1}, 0, 1), f32({2, batch(), 7})}, Axis{0})};
}

}  // namespace

constinit const Op sort = {
    .name = "sort",
    .summary = "x sorted along an axis, and the index of each element; stable, NaN is the largest",
    .operands = kSortOperands,
    .attributes = attribute_schema<Sort>(),
    .infer = infer_sort,
    .routine = "sort",
    .samples = sort_samples};
constinit const Op top_k = {
    .name = "top_k",
    .summary = "the largest (or smallest) elements along an axis, sorted, and their indices",
    .operands = kSortOperands,
    .attributes = attribute_schema<TopK>(),
    .infer = infer_top_k,
    .routine = "top_k",
    .samples = top_k_samples};
constinit const Op median = {
    .name = "median",
    .summary = "the lower middle element along an axis, and its index; the first NaN if there is one",
    .operands = kSortOperands,
    .attributes = attribute_schema<Axis>(),
    .infer = infer_median,
    .routine = "median",
    .samples = median_samples};
constinit const Op kth_value = {
    .name = "kth_value",
    .summary = "the element of a rank along an axis, and its index; NaN is the largest",
    .operands = kSortOperands,
    .attributes = attribute_schema<KthValue>(),
    .infer = infer_kth_value,
    .routine = "kth_value",
    .samples = kth_value_samples};
constinit const Op scatter_add = {
    .name = "scatter_add",
    .summary = "x with one element of the source added per index; indices may repeat",
    .operands = kScatterOperands,
    .attributes = attribute_schema<Axis>(),
    .infer = infer_scatter_along<Axis>,
    .routine = "scatter_add",
    .samples = scatter_add_samples};
constinit const Op scatter_reduce = {
    .name = "scatter_reduce",
    .summary = "x reduced with one element of the source per index; indices may repeat",
    .operands = kScatterOperands,
    .attributes = attribute_schema<ScatterReduce>(),
    .infer = infer_scatter_reduce,
    .routine = "scatter_reduce",
    .samples = scatter_reduce_samples};

}  // namespace ingot::core::ops
