// SPDX-License-Identifier: Apache-2.0
// Losses, which models compute if they receive labels.
#include <cmath>

#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"
#include "ops/axis.h"

namespace ingot::core::aten {
namespace {

enum Reduction { kNoReduction, kMeanOfLosses, kSumOfLosses };  // torch's values

void give_reduced(Call& call, const Term& loss) {
  const int64_t reduction = call.integer("reduction");
  if (reduction == kNoReduction) return call.give(loss);
  call.give(loss.reduce(reduction == kMeanOfLosses ? ops::mean : ops::sum, all_axes(loss.shape().size())));
}

// The loss of classes: the logarithms of their probabilities are in dim 1, or in the only one.
void give_class_loss(Call& call, const Term& logs, double smoothing) {
  core::Value* target = call.tensor("target");
  if (is_floating(target->type.dtype)) call.refuse("classes as probabilities");
  const int64_t axis = logs.shape().size() > 1 ? 1 : 0;
  const Term given(call, converted(call.graph(), target, DType::kI64));
  const Term ignored(call, emit(call, ops::equal, {given, operand(call, "ignore_index", DType::kI64)}));
  const Term place = ignored.choose(given.constant(0), given);
  Term weight(call, filled(call, given.shape(), 1, logs.dtype()));
  core::Value* by_class = call.optional_tensor("weight");
  if (by_class) weight = {call, emit(call, ops::take, {by_class, place}, ops::Axis{0})};
  weight = ignored.choose(weight.constant(0), weight);
  core::Value* at = unsqueezed(call, place, static_cast<size_t>(axis));
  const Term own(call, without_axes(call, emit(call, ops::gather, {logs, at}, ops::Axis{axis}), {axis}));
  Term loss = -(own * weight);
  if (smoothing > 0) {
    Term all = logs;
    if (by_class) {
      Shape along(logs.shape().size(), 1);
      along[static_cast<size_t>(axis)] = logs.shape()[static_cast<size_t>(axis)];
      all = logs * Term(call, reshaped(call, by_class, along));
    }
    const Term spread = -all.reduce(ops::sum, {axis});
    const Term classes(call,
                       size_scalar(call.graph(), logs.shape()[static_cast<size_t>(axis)], logs.dtype()));
    loss = loss * (1 - smoothing) + ignored.choose(spread.constant(0), spread) * smoothing / classes;
  }
  if (call.integer("reduction") != kMeanOfLosses) return give_reduced(call, loss);
  const std::vector<int64_t> axes = all_axes(loss.shape().size());
  call.give(loss.reduce(ops::sum, axes) / weight.reduce(ops::sum, axes));
}
void negative_log_likelihood(Call& call) { give_class_loss(call, operand_term(call, "self"), 0); }
void cross_entropy(Call& call) {
  core::Value* x = call.tensor("self");
  const ops::Axis axis{x->type.rank() > 1 ? 1 : 0};
  give_class_loss(call, {call, emit(call, ops::log_softmax, {x}, axis)}, call.number("label_smoothing"));
}

constexpr Converter kLossConverters[] = {
    {"aten.cross_entropy_loss.default", cross_entropy, kComposed},
    {"aten.nll_loss.default", negative_log_likelihood, kComposed},
    {"aten.nll_loss_nd.default", negative_log_likelihood, kComposed},
};

}  // namespace

std::span<const Converter> loss_converters() { return kLossConverters; }

}  // namespace ingot::core::aten
