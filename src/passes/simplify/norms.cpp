// SPDX-License-Identifier: Apache-2.0
// Decomposed normalization, softmax and linear layers.
#include <algorithm>

#include "ops/axis.h"
#include "ops/normalization.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/statistics.h"
#include "ops/view.h"
#include "ops/weight_or_constant.h"
#include "passes/simplify/rules.h"

namespace ingot::core::rewriting {
namespace {

// How many trailing dims a reduction takes, keeping them with size 1; 0 for other reductions.
int64_t reduced_last_dims(const Node& node) {
  const auto reduce = node.attributes<ops::Reduce>();
  const int64_t count = static_cast<int64_t>(reduce.axes.size());
  const int64_t first = static_cast<int64_t>(node.operand_type(0).rank()) - count;
  for (int64_t i = 0; i < count; ++i) {
    if (reduce.axes[static_cast<size_t>(i)] != first + i) return 0;
  }
  return reduce.keep_dims ? count : 0;
}

std::optional<ops::Normalization> normalization(const Match& match, std::string_view mean) {
  const auto epsilon = number_everywhere(match.value("e"));
  const int64_t axes = reduced_last_dims(match.node(mean));
  if (!epsilon || axes == 0) return std::nullopt;
  return ops::Normalization{*epsilon, axes};
}

Value* rms_norm(Graph& graph, const Match& match) {
  const auto attributes = normalization(match, "square");
  return attributes ? graph.call(ops::rms_norm, {match.value("x")}, *attributes) : nullptr;
}

Value* layer_norm(Graph& graph, const Match& match) {
  const auto attributes = normalization(match, "square");
  if (!attributes || match.node("mean").values != match.node("square").values) return nullptr;
  return graph.call(ops::layer_norm, {match.value("x")}, *attributes);
}

Value* layer_norm_of_variance(Graph& graph, const Match& match) {
  const auto attributes = normalization(match, "mean");
  const auto mean = match.node("mean").attributes<ops::Reduce>();
  const auto variance = match.node("square").attributes<ops::Variance>();
  if (!attributes || variance.correction != 0 || variance.axes != mean.axes || !variance.keep_dims)
    return nullptr;
  return graph.call(ops::layer_norm, {match.value("x")}, *attributes);
}

// The norm's result has no other users, and `w` has the shape of its row.
bool is_affine(const Match& match) {
  const Value* norm = match.value("norm");
  const Value* w = match.value("w");
  const Shape& shape = norm->type.shape;
  const int64_t axes = norm->producer->attributes<ops::Normalization>().axes;
  return match.is_used_once("norm") && w->type.dtype == norm->type.dtype &&
         std::ranges::equal(w->type.shape, std::span(shape).last(static_cast<size_t>(axes)));
}

Value* with_last_operand(Graph& graph, const Match& match) {
  const Node& node = match.node("norm");
  std::vector<Value*> operands = node.operands;
  *std::ranges::find(operands, nullptr) = match.value("w");
  return graph.call(*node.op, std::move(operands), node.values);
}

Value* softmax(Graph& graph, const Match& match) {
  const auto largest = match.node("largest").attributes<ops::Reduce>();
  const auto total = match.node("total").attributes<ops::Reduce>();
  if (largest.axes != total.axes || total.axes.size() != 1 || !largest.keep_dims || !total.keep_dims)
    return nullptr;
  return graph.call(ops::softmax, {match.value("x")}, ops::Axis{total.axes[0]});
}

Value* log_softmax(Graph& graph, const Match& match) {
  return graph.call(ops::log_softmax, {match.value("x")}, match.node("softmax").values);
}

bool is_matrix_transposition(const Match& match) {
  return match.value("w")->type.rank() == 2 && match.value("x")->type.rank() >= 1 &&
         match.node("turned").attributes<ops::Permutation>().order == std::vector<int64_t>{1, 0};
}

// Transposed weights, maybe converted: transposing them back allows packing them once.
bool is_weight(const Match& match) {
  const Node* w = match.value("w")->producer;
  while (w != nullptr && (w->op == &ops::convert || w->op == &ops::transpose)) w = w->operands[0]->producer;
  return match.value("w")->type.rank() == 2 && match.value("x")->type.rank() >= 1 &&
         ops::is_weight_or_constant(w);
}
Value* linear_of_turned(Graph& graph, const Match& match) {
  Value* turned = graph.call(ops::transpose, {match.value("w")}, ops::Permutation{{1, 0}});
  return graph.call(ops::linear, {match.value("x"), turned});
}

// Rows are flattened only for the product: without the reshape, its users can join it.
bool restores_rows(const Match& match) {
  const Shape &given = match.value("x")->type.shape, &flat = match.value("flat")->type.shape,
              &result = match.result()->type.shape;
  return given.size() == result.size() && given.size() > 1 && match.is_used_once("product") &&
         given.back() == flat.back() && std::equal(given.begin(), given.end() - 1, result.begin());
}

bool is_bias(const Match& match) {
  const Value* linear = match.value("product");
  const Value* bias = match.value("b");
  return match.is_used_once("product") && bias->type.dtype == linear->type.dtype && bias->type.rank() == 1 &&
         bias->type.shape.back() == linear->type.shape.back();
}

constexpr Rule kNormRules[] = {
    {.name = "layer_norm",
     .from =
         "multiply(c:subtract(x, mean:mean(x)), reciprocal_square_root(add(square:mean(multiply(c, c)), e)))",
     .build = layer_norm},
    {.name = "layer_norm_of_divide",
     .from = "divide(c:subtract(x, mean:mean(x)), square_root(add(square:mean(multiply(c, c)), e)))",
     .build = layer_norm},
    {.name = "layer_norm_of_variance",
     .from = "divide(subtract(x, mean:mean(x)), square_root(add(square:variance(x), e)))",
     .build = layer_norm_of_variance},
    {.name = "layer_norm_of_variance_root",
     .from = "multiply(subtract(x, mean:mean(x)), reciprocal_square_root(add(square:variance(x), e)))",
     .build = layer_norm_of_variance},
    // After layer_norm, which this one contains.
    {.name = "rms_norm",
     .from = "multiply(x, reciprocal_square_root(add(square:mean(multiply(x, x)), e)))",
     .build = rms_norm},
    {.name = "rms_norm_of_divide",
     .from = "divide(x, square_root(add(square:mean(multiply(x, x)), e)))",
     .build = rms_norm},
    {.name = "rms_norm_scale",
     .from = "multiply(norm:rms_norm(x), w)",
     .when = is_affine,
     .build = with_last_operand},
    {.name = "layer_norm_scale",
     .from = "multiply(norm:layer_norm(x), w)",
     .when = is_affine,
     .build = with_last_operand},
    {.name = "layer_norm_shift",
     .from = "add(norm:layer_norm(x, scale), w)",
     .when = is_affine,
     .build = with_last_operand},
    {.name = "softmax",
     .from = "divide(e:exp(subtract(x, largest:reduce_maximum(x))), total:sum(e))",
     .build = softmax},
    {.name = "log_softmax", .from = "log(softmax:softmax(x))", .build = log_softmax},
    {.name = "linear_of_transposed",
     .from = "matmul(x, turned:transpose(w))",
     .to = "linear(x, w)",
     .when = is_matrix_transposition},
    {.name = "linear_of_weight", .from = "matmul(x, w)", .when = is_weight, .build = linear_of_turned},
    {.name = "linear_bias", .from = "add(product:linear(x, w), b)", .to = "linear(x, w, b)", .when = is_bias},
    {.name = "linear_of_flat",
     .from = "reshape(product:linear(flat:reshape(x), w))",
     .to = "linear(x, w)",
     .when = restores_rows},
    {.name = "linear_bias_of_flat",
     .from = "reshape(product:linear(flat:reshape(x), w, b))",
     .to = "linear(x, w, b)",
     .when = restores_rows},
};

}  // namespace

std::span<const Rule> norm_rules() { return kNormRules; }

}  // namespace ingot::core::rewriting
