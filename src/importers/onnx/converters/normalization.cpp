// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>

#include "importers/onnx/converters/converters.h"
#include "ops/batch_norm.h"
#include "ops/concat.h"
#include "ops/normalization.h"
#include "ops/pool.h"
#include "ops/reduce.h"
#include "ops/statistics.h"

namespace ingot::core::onnx {
namespace {

void convert_batch_normalization(Call& call) {
  if (call.flag("training_mode") || call.wants(1)) refuse("statistics of the batch: training mode");
  call.give(call.graph().call(
      ops::batch_norm, {call.tensor(0), call.tensor(3), call.tensor(4), call.tensor(1), call.tensor(2)},
      ops::BatchNorm{call.attribute_number("epsilon", 1e-5)}));
}

void convert_instance_normalization(Call& call) {
  Value* x = call.tensor(0);
  const auto channels = x->type.rank() < 2 ? std::nullopt : x->type.shape[1].constant();
  if (!channels || *channels < 1) refuse("the number of channels is not fixed");
  call.give(call.graph().call(ops::group_norm, {x, call.tensor(1), call.tensor(2)},
                              ops::GroupNorm{*channels, call.attribute_number("epsilon", 1e-5)}));
}

// Until opset 21 scale and bias belong to groups, from then on to channels.
void convert_group_normalization(Call& call) {
  Graph& graph = call.graph();
  Value *x = call.tensor(0), *scale = call.tensor(1), *bias = call.tensor(2);
  const int64_t groups = call.attribute_integer("num_groups", 0);
  const auto channels = x->type.rank() < 2 ? std::nullopt : x->type.shape[1].constant();
  if (!channels || groups < 1 || *channels % groups != 0)
    refuse_node("the channels are not a multiple of the groups");
  const auto per_channel = [&](Value* value) {
    if (value->type.shape != Shape{groups} || *channels == groups) return value;
    value = expanded(graph, unsqueezed(graph, value, 1), {groups, *channels / groups});
    return reshaped(graph, value, {*channels});
  };
  call.give(graph.call(ops::group_norm, {x, per_channel(scale), per_channel(bias)},
                       ops::GroupNorm{groups, call.attribute_number("epsilon", 1e-5)}));
}

// The mean and 1 / deviation over the last dims, which models seldom ask for.
void give_moments(Call& call, Value* x, const std::vector<int64_t>& axes, double epsilon) {
  Graph& graph = call.graph();
  if (!call.wants(1) && !call.wants(2)) return;
  Value* wide = x->type.dtype == DType::kF64 ? x : converted(graph, x, DType::kF32);
  call.give(1, graph.call(ops::mean, {wide}, ops::Reduce{axes, true}));
  const Term variance(graph, graph.call(ops::variance, {wide}, ops::Variance{axes, true, 0}));
  call.give(2, (variance + epsilon).apply(ops::reciprocal_square_root));
}

// value * scale + bias, both broadcast.
Value* with_scale_and_bias(Graph& graph, Value* value, Value* scale, Value* bias) {
  Term result(graph, value);
  if (scale != nullptr)
    result = result * Term(graph, expanded(graph, scale, broadcast(value->type.shape, scale->type.shape)));
  if (bias != nullptr)
    result = result + Term(graph, expanded(graph, bias, broadcast(value->type.shape, bias->type.shape)));
  return result;
}

void convert_last_dims(Call& call) {
  Graph& graph = call.graph();
  Value *x = call.tensor(0), *scale = call.tensor(1), *bias = call.optional_tensor(2);
  const size_t rank = x->type.rank(), axis = call.axis(call.attribute_integer("axis", -1), rank);
  const Shape row(x->type.shape.begin() + static_cast<ptrdiff_t>(axis), x->type.shape.end());
  const double epsilon = call.attribute_number("epsilon", 1e-5);
  const ops::Normalization attributes{epsilon, static_cast<int64_t>(row.size())};
  const bool is_layer = &call.op() == &ops::layer_norm;
  const bool is_row = scale->type.shape == row && (bias == nullptr || bias->type.shape == row);
  std::vector<Value*> operands{x, is_row ? scale : nullptr};
  if (is_layer) operands.push_back(is_row ? bias : nullptr);
  Value* result = graph.call(call.op(), std::move(operands), attributes);
  call.give(0, is_row ? result : with_scale_and_bias(graph, result, scale, bias));
  std::vector<int64_t> axes(row.size());
  std::iota(axes.begin(), axes.end(), static_cast<int64_t>(axis));
  if (is_layer) give_moments(call, x, axes, epsilon);
}

void convert_lp_normalization(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const auto axis = static_cast<int64_t>(call.axis(call.attribute_integer("axis", -1), x->type.rank()));
  const int64_t order = call.attribute_integer("p", 2);
  if (order != 1 && order != 2) refuse_node("p is neither 1 nor 2");
  const Term norm(graph, graph.call(ops::norm, {x}, ops::Norm{static_cast<double>(order), {axis}, true}));
  const Term is_zero = norm.apply(ops::equal, norm.constant(0));
  call.give(is_zero.choose(norm.constant(0), Term(graph, x) / norm));
}

// x / (bias + alpha / size * sum of the squares of neighbouring channels) ^ beta.
void convert_local_response(Call& call) {
  Graph& graph = call.graph();
  const Term x(graph, call.tensor(0));
  const Shape shape = static_cast<Value*>(x)->type.shape;
  const int64_t size = call.attribute_integer("size", 0);
  if (shape.size() < 3 || size < 1 || size > 4096)
    refuse_node("the input has too few dims, or the size is wrong");
  // Channels are the only spatial dim of the window.
  Value* squares = reshaped(graph, x * x, {shape[0], 1, shape[1], product(std::span(shape).subspan(2))});
  ops::Pad around{Shape(4, 0), Shape(4, 0), 0, "constant"};
  around.low[2] = (size - 1) / 2;
  around.high[2] = size / 2;
  squares = graph.call(ops::pad, {squares}, around);
  Value* sums =
      graph.call(ops::average_pool, {squares}, ops::AveragePool{{size, 1}, {1, 1}, {0, 0}, false, true, 1});
  const double alpha = call.attribute_number("alpha", 1e-4), beta = call.attribute_number("beta", 0.75);
  const Term base = Term(graph, reshaped(graph, sums, shape)) * (alpha / static_cast<double>(size)) +
                    call.attribute_number("bias", 1);
  call.give(x / base.apply(ops::power, base.constant(beta)));
}

void convert_mean_variance(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  std::vector<int64_t> given =
      call.has_attribute("axes") ? call.attributes("axes") : std::vector<int64_t>{0, 2, 3};
  std::vector<int64_t> axes;
  for (const size_t axis : call.axes(given, x->type.rank())) axes.push_back(static_cast<int64_t>(axis));
  std::ranges::sort(axes);
  const Term value(graph, x), mean(graph, graph.call(ops::mean, {x}, ops::Reduce{axes, true}));
  const Term variance(graph, graph.call(ops::variance, {x}, ops::Variance{axes, true, 0}));
  call.give((value - mean) / (variance.apply(ops::square_root) + 1e-9));
}

constexpr auto kNormalization = std::to_array<Converter>({
    {"BatchNormalization", convert_batch_normalization, nullptr, 9},
    {"GroupNormalization", convert_group_normalization, nullptr, 18},
    {"InstanceNormalization", convert_instance_normalization, nullptr, 6},
    {"LRN", convert_local_response},
    {"LayerNormalization", convert_last_dims, &ops::layer_norm, 17},
    {"LpNormalization", convert_lp_normalization},
    {"MeanVarianceNormalization", convert_mean_variance, nullptr, 9},
    {"RMSNormalization", convert_last_dims, &ops::rms_norm, 23},
});

}  // namespace

std::span<const Converter> normalization_converters() { return kNormalization; }

}  // namespace ingot::core::onnx
