// SPDX-License-Identifier: Apache-2.0
#include "ops/activation.h"

#include <array>

#include "importers/onnx/converters/converters.h"
#include "ops/axis.h"
#include "ops/select.h"
#include "ops/statistics.h"

namespace ingot::core::onnx {
namespace {

void convert_activation(Call& call) { call.give(call.graph().call(call.op(), {call.tensor(0)})); }

void convert_elu(Call& call) {
  call.give(
      call.graph().call(ops::elu, {call.tensor(0)}, ops::Elu{.alpha = call.attribute_number("alpha", 1)}));
}

void convert_selu(Call& call) {
  const double alpha = call.attribute_number("alpha", 1.67326319217681884765625);
  const double gamma = call.attribute_number("gamma", 1.05070102214813232421875);
  call.give(call.graph().call(ops::elu, {call.tensor(0)}, ops::Elu{.alpha = alpha, .scale = gamma}));
}

void convert_celu(Call& call) {
  const double alpha = call.attribute_number("alpha", 1);
  call.give(call.graph().call(ops::elu, {call.tensor(0)},
                              ops::Elu{.alpha = alpha, .scale = 1, .input_scale = 1 / alpha}));
}

void convert_leaky_relu(Call& call) {
  call.give(call.graph().call(ops::leaky_relu, {call.tensor(0)},
                              ops::LeakyRelu{call.attribute_number("alpha", 0.01)}));
}

// The slope broadcasts to x, aligned at the right.
void convert_prelu(Call& call) {
  const Term x(call.graph(), call.tensor(0)), slope(call.graph(), call.tensor(1));
  call.give((x < 0).choose(x * slope, x));
}

void convert_thresholded_relu(Call& call) {
  const Term x(call.graph(), call.tensor(0));
  call.give((x > call.attribute_number("alpha", 1)).choose(x, x.constant(0)));
}

void convert_hard_sigmoid(Call& call) {
  Graph& graph = call.graph();
  const Term x(graph, call.tensor(0));
  const Term line = x * call.attribute_number("alpha", 0.2) + call.attribute_number("beta", 0.5);
  call.give(graph.call(ops::clamp, {line}, ops::Clamp{0, 1}));
}

void convert_softsign(Call& call) {
  const Term x(call.graph(), call.tensor(0));
  call.give(x / (x.apply(ops::absolute) + 1));
}

void convert_gelu(Call& call) {
  const std::string approximate = call.attribute_text("approximate", "none");
  if (approximate != "none" && approximate != "tanh") refuse_node("there is no such approximation of Gelu");
  call.give(call.graph().call(ops::gelu, {call.tensor(0)}, ops::Gelu{approximate == "tanh"}));
}

void convert_shrink(Call& call) {
  const Term x(call.graph(), call.tensor(0));
  const double bias = call.attribute_number("bias", 0), limit = call.attribute_number("lambd", 0.5);
  call.give((x < -limit).choose(x + bias, (x > limit).choose(x - bias, x.constant(0))));
}

size_t axis_of(Call& call) { return call.axis(call.attribute_integer("axis", -1), call.rank(0)); }

void convert_softmax(Call& call) {
  call.give(call.graph().call(call.op(), {call.tensor(0)}, ops::Axis{static_cast<int64_t>(axis_of(call))}));
}

// One where the first maximum along the axis is.
void convert_hardmax(Call& call) {
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  const size_t axis = axis_of(call);
  const auto first = static_cast<int64_t>(axis);
  Value* largest = graph.call(ops::argmax, {x}, ops::ArgReduce{first, true});
  Shape line(x->type.rank(), 1);
  line[axis] = x->type.shape[axis];
  Value* index = reshaped(graph, counting(graph, x->type.shape[axis]), line);
  call.give(converted(graph, graph.call(ops::equal, {index, largest}), x->type.dtype));
}

constexpr auto kActivation = std::to_array<Converter>({
    {"Celu", convert_celu, nullptr, 12},
    {"Elu", convert_elu},
    {"Gelu", convert_gelu, nullptr, 20},
    {"HardSigmoid", convert_hard_sigmoid},
    {"HardSwish", convert_activation, &ops::hard_swish, 14},
    {"Hardmax", convert_hardmax, nullptr, 13},
    {"LeakyRelu", convert_leaky_relu},
    {"LogSoftmax", convert_softmax, &ops::log_softmax, 13},
    {"Mish", convert_activation, &ops::mish, 18},
    {"PRelu", convert_prelu, nullptr, 7},
    {"Relu", convert_activation, &ops::relu},
    {"Selu", convert_selu},
    {"Shrink", convert_shrink, nullptr, 9},
    {"Sigmoid", convert_activation, &ops::sigmoid},
    {"Softmax", convert_softmax, &ops::softmax, 13},
    {"Softplus", convert_activation, &ops::softplus},
    {"Softsign", convert_softsign},
    {"ThresholdedRelu", convert_thresholded_relu, nullptr, 10},
});

}  // namespace

std::span<const Converter> activation_converters() { return kActivation; }

}  // namespace ingot::core::onnx
