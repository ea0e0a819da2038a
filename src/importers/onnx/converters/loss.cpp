// SPDX-License-Identifier: Apache-2.0
// Losses of classes, as models in evaluation return them.
#include <array>

#include "importers/onnx/converters/converters.h"
#include "ops/axis.h"
#include "ops/reduce.h"

namespace ingot::core::onnx {
namespace {

// Minus the logarithm at the class of each element, times the weight of the class; ignored classes count
// nothing.
Value* likelihood_loss(Call& call, Value* logarithms) {
  Graph& graph = call.graph();
  const size_t rank = logarithms->type.rank();
  if (rank < 2) refuse_node("the input must have a batch and classes");
  const Term given(graph, converted(graph, call.tensor(1), DType::kI64));
  const bool ignores = call.has_attribute("ignore_index");
  const Term ignored = given.apply(
      ops::equal, given.constant(static_cast<double>(call.attribute_integer("ignore_index", -1))));
  const Term target = ignores ? ignored.choose(given.constant(0), given) : given;
  Value* at = unsqueezed(graph, target, 1);
  const Term picked(graph, without_axis(graph, graph.call(ops::gather, {logarithms, at}, ops::Axis{1}), 1));
  Term weight(graph, filled(graph, static_cast<Value*>(target)->type.shape, 1, logarithms->type.dtype));
  if (call.has(2)) weight = Term(graph, graph.call(ops::take, {call.tensor(2), target}, ops::Axis{0}));
  if (ignores) weight = ignored.choose(weight.constant(0), weight);
  const Term loss = -(picked * weight);
  const std::string reduction = call.attribute_text("reduction", "mean");
  if (reduction == "none") return loss;
  const ops::Reduce all{all_axes(rank - 1), false};
  const Term total(graph, graph.call(ops::sum, {loss}, all));
  if (reduction == "sum") return total;
  if (reduction != "mean") refuse_node("there is no reduction '" + reduction + "'");
  return total / Term(graph, graph.call(ops::sum, {weight}, all));
}

void convert_likelihood_loss(Call& call) { call.give(likelihood_loss(call, call.tensor(0))); }

void convert_cross_entropy_loss(Call& call) {
  Value* scores = call.tensor(0);
  if (scores->type.rank() < 2) refuse_node("the input must have a batch and classes");
  Value* logarithms = call.graph().call(ops::log_softmax, {scores}, ops::Axis{1});
  call.give(0, likelihood_loss(call, logarithms));
  call.give(1, logarithms);
}

constexpr auto kLoss = std::to_array<Converter>({
    {"NegativeLogLikelihoodLoss", convert_likelihood_loss, nullptr, 12},
    {"SoftmaxCrossEntropyLoss", convert_cross_entropy_loss, nullptr, 12},
});

}  // namespace

std::span<const Converter> loss_converters() { return kLoss; }

}  // namespace ingot::core::onnx
