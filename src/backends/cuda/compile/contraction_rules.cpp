// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction_rules.h"

#include <algorithm>
#include <numeric>

#include "backends/cuda/compile/depthwise.h"
#include "backends/cuda/compile/tensor_core_types.h"
#include "backends/cuda/compile/tile.h"
#include "backends/steps/fusion_rules.h"
#include "ops/convolution.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/view.h"

namespace ingot::core::cuda {
namespace {

bool is_chunked(const Dim& dim, DType dtype) {
  const auto size = dim.constant();
  return size && *size > 0 && *size % chunk_of(dtype) == 0;
}

bool reads_linear(const Node& node) {
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  return x.layout.is_row_major() && x.rank() >= 1 && innermost(weight) == 1 &&
         is_chunked(x.shape.back(), x.dtype);
}

bool reads_normalized_linear(const Node& node) {
  const bool has_rows = node.has_operand(ops::kNormalizedScale) || may_normalize(node.operand_type(0));
  return reads_linear(node) && has_rows &&
         (!node.has_operand(ops::kNormalizedSums) ||
          node.operand_type(ops::kNormalizedSums).dtype == DType::kF32);
}

bool reads_matmul(const Node& node) {
  const TensorType &a = node.operand_type(0), &b = node.operand_type(1);
  if (innermost(a) != a.rank() - 1 || !is_chunked(a.shape.back(), a.dtype)) return false;
  const auto inner = innermost(b);
  return inner && *inner + 2 >= b.rank() && is_chunked(b.shape[*inner], b.dtype) &&
         is_chunked(b.shape[b.rank() - 2], b.dtype);
}

bool reads_convolution(const Node& node) {
  const TensorType &x = node.operand_type(0), &weight = node.operand_type(1);
  const bool layouts = innermost(x) == 1 && innermost(weight) == 1 &&
                       x.layout == Layout::permutation(channels_last(x.rank())) && weight.layout == x.layout;
  return layouts && x.rank() == 4 && node.attributes<ops::Convolution>().groups == 1 &&
         is_chunked(x.shape[1], x.dtype);
}

// If every reader slices one of equal parts of the last dim, the parts are stored one after another, so that
// reading one costs nothing.
Layout layout_of_parts(const Value& result) {
  const int last = static_cast<int>(result.type.rank()) - 1;
  std::optional<int64_t> width;
  for (const Node* user : result.users) {
    if (user->op != &ops::slice) return {};
    const auto slice = user->attributes<ops::Slice>();
    const auto start = slice.start.constant(), end = slice.end.constant();
    if (slice.axis != last || slice.step != 1 || !start || !end) return {};
    if (width.value_or(*end - *start) != *end - *start || *start % (*end - *start) != 0) return {};
    width = *end - *start;
  }
  const auto whole = result.type.shape[static_cast<size_t>(last)].constant();
  if (!width || !whole || *whole % *width != 0 || *whole == *width) return {};
  std::vector<int> order(result.type.rank());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin(), order.end() - 1, order.end());
  return Layout::blocked(order, last, *width);
}

}  // namespace

bool may_normalize(const TensorType& x) {
  const auto depth = x.shape.back().constant();
  const auto rows = product(Shape(x.shape.begin(), x.shape.end() - 1)).constant();
  if (!has_tensor_cores(x.dtype) || !depth || !rows || !is_chunked(x.shape.back(), x.dtype)) return false;
  return !rank_row_tiles({.batch = 1,
                          .rows = *rows,
                          .columns = 1,
                          .depth = *depth,
                          .b_depth_inner = true,
                          .element = static_cast<int>(bit_width(x.dtype) / 8)})
              .empty();
}

bool may_compute_rows(const Node& root, const Node& producer) {
  constexpr int64_t kMost = 16 << 10;  // elements: 64 of a thread, by each block
  const bool is_linear = root.op == &ops::linear || root.op == &ops::normalized_linear;
  if (!is_linear || !is_tensor_core_contraction(root) || !may_normalize(root.operand_type(0))) return false;
  const Value* rows = root.operands[0];
  if (producer.results[0] != rows || std::ranges::count(root.operands, rows) != 1) return false;
  const auto is_reduced = [](const Value* operand) {  // its kernel takes the producer in
    return operand != nullptr && operand->producer != nullptr &&
           operand->producer->op->traits.has(Trait::kReduction);
  };
  return rows->type.layout.is_row_major() &&
         element_count(rows->type).constant().value_or(kMost + 1) <= kMost &&
         !reads_data_dependent_indices(producer) && std::ranges::none_of(producer.operands, is_reduced);
}

FusionAnswer may_be_twins(const Node& root, const Node& twin) {
  const bool is_linear = root.op == &ops::linear || root.op == &ops::normalized_linear;
  if (!is_linear || twin.op != root.op || twin.operands[0] != root.operands[0] || twin.values != root.values)
    return {false, "it is not a linear layer of the same input"};
  const auto same_presence = [&](size_t operand) {
    return root.has_operand(operand) == twin.has_operand(operand);
  };
  if (twin.operand_type(1) != root.operand_type(1) || twin.results[0]->type != root.results[0]->type ||
      (root.op == &ops::normalized_linear && !same_presence(ops::kNormalizedSums)))
    return {false, "it is a linear layer of another form"};
  const bool has_statistics =
      root.op == &ops::normalized_linear &&
      (root.has_operand(ops::kNormalizedScale) || twin.has_operand(ops::kNormalizedScale));
  return {may_normalize(root.operand_type(0)) && !has_statistics && is_tensor_core_contraction(root) &&
              is_tensor_core_contraction(twin),
          "kernel templates compute two products of few rows only"};
}

bool is_tensor_core_contraction(const Node& node) {
  if (node.results.empty() || !has_tensor_cores(node.operand_type(0).dtype)) return false;
  const TensorType& result = node.results[0]->type;
  if (storage_elements(result.layout, result.shape) != product(result.shape)) return false;
  if (node.op == &ops::linear) return reads_linear(node);
  if (node.op == &ops::normalized_linear) return reads_normalized_linear(node);
  if (node.op == &ops::matmul) return reads_matmul(node);
  return node.op == &ops::convolution && reads_convolution(node);
}

LayoutRequest contraction_layouts(const Node& node) {
  const bool is_image = node.op == &ops::convolution && node.operand_type(0).rank() == 4;
  if (is_image && has_tensor_cores(node.operand_type(0).dtype)) {
    const Layout layout = Layout::permutation(channels_last(4));
    // Adjacent threads have adjacent result channels, and so adjacent channels of the weight.
    if (node.attributes<ops::Convolution>().groups != 1)
      return {{layout, depthwise_weight_layout()}, {layout}};
    return {{layout, layout}, {layout}};
  }
  if (node.op == &ops::linear || node.op == &ops::normalized_linear)
    return {{Layout{}, Layout{}}, {layout_of_parts(*node.results[0])}};
  return {};
}

}  // namespace ingot::core::cuda
