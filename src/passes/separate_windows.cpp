// SPDX-License-Identifier: Apache-2.0
#include "passes/separate_windows.h"

#include <algorithm>
#include <ranges>

#include "ops/convolution.h"
#include "ops/fold.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/view.h"
#include "passes/one_user.h"

namespace ingot::core {
namespace {

using Sizes = std::vector<int64_t>;

// The same values for each tap.
Value* repeated(Graph& graph, Value* values, int64_t taps) {
  const Dim count = values->type.shape[0];
  values = graph.call(ops::reshape, {values}, ops::NewShape{{1, count}});
  values = graph.call(ops::expand, {values}, ops::NewShape{{taps, count}});
  return graph.call(ops::reshape, {values}, ops::NewShape{{Dim(taps) * count}});
}

// Whether a fold only moves elements, each of them once.
bool is_rearrangement(const Node& node) {
  if (node.op != &ops::fold || node.has_operand(1)) return false;
  const auto fold = node.attributes<ops::Fold>();
  const Shape& x = node.operand_type(0).shape;
  const auto spatial = std::views::iota(size_t{0}, fold.kernel.size());
  return std::ranges::all_of(spatial, [&](size_t i) { return ops::fills_result(fold, x, i); });
}

}  // namespace

bool has_separate_windows(const Node& node) {
  if (node.op != &ops::convolution_transpose) return false;
  const auto convolution = node.attributes<ops::ConvolutionTranspose>();
  const Shape& weight = node.operand_type(1).shape;
  const bool is_known =
      std::ranges::all_of(weight, [](const Dim& dim) { return dim.is_constant() && *dim.constant() > 0; });
  return is_known && convolution.groups == 1 && ops::all_are(convolution.padding, 0) &&
         ops::all_are(convolution.output_padding, 0) && ops::all_are(convolution.dilation, 1) &&
         std::ranges::equal(convolution.stride, std::span(weight).subspan(2),
                            [](int64_t stride, const Dim& size) { return Dim(stride) == size; });
}

Value* weight_of_windows(Graph& graph, Value* weight) {
  const Shape given = weight->type.shape;
  const Dim taps = product(std::span(given).subspan(2));
  weight = graph.call(ops::reshape, {weight}, ops::NewShape{{given[0], given[1], taps}});
  weight = graph.call(ops::transpose, {weight}, ops::Permutation{{2, 1, 0}});
  Shape shape(given.size(), 1);
  shape[0] = taps * given[1];
  shape[1] = given[0];
  return graph.call(ops::reshape, {weight}, ops::NewShape{shape});
}

Value* convolve_windows(Graph& graph, const Node& node, Value* weight) {
  const auto stride = node.attributes<ops::ConvolutionTranspose>().stride;
  int64_t taps = 1;
  for (const int64_t size : stride) taps *= size;
  const Sizes ones(stride.size(), 1), zeros(stride.size(), 0);
  Value* bias = node.has_operand(2) ? repeated(graph, node.operands[2], taps) : nullptr;
  Value* windows =
      graph.call(ops::convolution, {node.operands[0], weight, bias}, ops::Convolution{ones, zeros, ones, 1});
  const Shape& result = node.results[0]->type.shape;
  return graph.call(ops::fold, {windows, nullptr},
                    ops::Fold{stride, stride, zeros, Shape(result.begin() + 2, result.end()), 1});
}

Value* quantize_before_rearrangement(Graph& graph, const Node& quantization) {
  const Value* value = quantization.operands[0];
  const Node* fold = value->producer;
  if (!has_one_user(graph, value) || fold == nullptr || !is_rearrangement(*fold)) return nullptr;
  std::vector<Value*> operands = quantization.operands;
  for (size_t i = 1; i < operands.size(); ++i) {
    if (operands[i] != nullptr && operands[i]->type.rank() != 0) return nullptr;
  }
  operands[0] = fold->operands[0];
  Value* numbers = graph.call(ops::quantize, std::move(operands), quantization.values);
  return graph.call(ops::fold, {numbers, nullptr}, fold->values);
}

}  // namespace ingot::core
