// SPDX-License-Identifier: Apache-2.0
// One layer of a recurrent network, in one or both directions. The input projections of all steps are one
// `linear`; the sequential remainder is a routine, with packed weights (docs/design/005).
#include "ops/recurrent.h"
#include "ops/concat.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/reshape.h"
#include "ops/samples.h"
#include "ops/select.h"
#include "ops/view.h"

namespace ingot::core::ops {
namespace {

constexpr DTypeSet kReal = DTypeSet::kFloating;
constexpr Operand kLstmOperands[] = {{"x", kReal},
                                     {"hidden", kReal},
                                     {"cell", kReal},
                                     {"input_weight", kReal},
                                     {"hidden_weight", kReal},
                                     {.name = "input_bias", .dtypes = kReal, .optional = true},
                                     {.name = "hidden_bias", .dtypes = kReal, .optional = true}};
// Also for rnn.
constexpr Operand kGruOperands[] = {{"x", kReal},
                                    {"hidden", kReal},
                                    {"input_weight", kReal},
                                    {"hidden_weight", kReal},
                                    {.name = "input_bias", .dtypes = kReal, .optional = true},
                                    {.name = "hidden_bias", .dtypes = kReal, .optional = true}};
constexpr Operand kLstmSteps[] = {{"gates", kReal}, {"hidden", kReal}, {"cell", kReal}, {"weight", kReal}};
constexpr Operand kGruSteps[] = {{"gates", kReal},
                                 {"hidden", kReal},
                                 {"weight", kReal},
                                 {.name = "bias", .dtypes = kReal, .optional = true}};
constexpr Operand kRnnSteps[] = {{"sums", kReal}, {"hidden", kReal}, {"weight", kReal}};

constexpr int64_t kPanelColumns = 16;  // of the routines' packed weight

// Results: all hidden states [T, B, D*H], and the last state of each kind [D, B, H]; D: directions.
Types result_types(const Node& node, size_t states) {
  require_same_dtype(node);
  require_rank(node, 0, 3);
  require_rank(node, 1, 3);
  const TensorType &x = node.operand_type(0), &hidden = node.operand_type(1);
  const Dim& directions = hidden.shape[0];
  require(directions == Dim(1) || directions == Dim(2), node, "there must be one or two directions");
  Types types{{x.dtype, {x.shape[0], x.shape[1], directions * hidden.shape[2]}, {}}};
  for (size_t i = 0; i < states; ++i) {
    require_shape(node, 1 + i, {directions, x.shape[1], hidden.shape[2]});
    types.push_back({x.dtype, hidden.shape, {}});
  }
  return types;
}

// `first` is the operand after the states: input weight, hidden weight, biases.
Types infer_layer(const Node& node, size_t states, int64_t gates) {
  Types types = result_types(node, states);
  const Dim hidden = types[1].shape[2], rows = Dim(gates) * types[0].shape[2];
  const size_t first = 1 + states;
  require_shape(node, first, {rows, node.operand_type(0).shape.back()});
  require_shape(node, first + 1, {rows, hidden});
  for (size_t i = first + 2; i < first + 4; ++i) {
    if (node.has_operand(i)) require_shape(node, i, {rows});
  }
  return types;
}
Types infer_steps(const Node& node, size_t states, int64_t gates) {
  Types types = result_types(node, states);
  require(types[0].dtype == DType::kF32 || types[0].dtype == DType::kF64, node,
          "the dtype must be f32 or f64");
  const Dim directions = types[1].shape[0], hidden = types[1].shape[2],
            width = Dim(gates) * types[0].shape[2];
  require(node.operand_type(0).shape[2] == width, node, "each gate must be one block of the hidden size");
  require_shape(node, 1 + states,
                {directions, ceil_divide(hidden, kPanelColumns), hidden, gates, kPanelColumns});
  if (node.has_operand(2 + states)) require_shape(node, 2 + states, {width});
  return types;
}
Types infer_rnn(const Node& node) { return infer_layer(node, 1, 1); }
Types infer_rnn_steps(const Node& node) { return infer_steps(node, 1, 1); }
Types infer_lstm(const Node& node) { return infer_layer(node, 2, 4); }
Types infer_lstm_steps(const Node& node) { return infer_steps(node, 2, 4); }
Types infer_gru(const Node& node) { return infer_layer(node, 1, 3); }
Types infer_gru_steps(const Node& node) { return infer_steps(node, 1, 3); }

// Routines compute in f32 or f64.
class Layer {
 public:
  Layer(Graph& graph, const Node& node)
      : graph_(graph),
        node_(node),
        dtype_(node.operand_type(0).dtype),
        wide_(dtype_ == DType::kF64 ? DType::kF64 : DType::kF32) {}

  Value* operand(size_t index) {
    Value* value = node_.has_operand(index) ? node_.operands[index] : nullptr;
    return value == nullptr || dtype_ == wide_ ? value : graph_.call(convert, {value}, Convert{wide_});
  }
  // The sum of both biases; null if there are none.
  Value* summed_biases(size_t first) {
    Value *bias = operand(first), *hidden_bias = operand(first + 1);
    if (bias == nullptr || hidden_bias == nullptr) return bias == nullptr ? hidden_bias : bias;
    return graph_.call(add, {bias, hidden_bias});
  }
  // From [D * gates * H, H] to [D, panels, H, gates, kPanelColumns], zero-padded after the last column.
  Value* packed(size_t index, int64_t gates) {
    const Shape& state = node_.operand_type(1).shape;
    const Dim &directions = state[0], &hidden = state[2], panels = ceil_divide(hidden, kPanelColumns);
    Value* weight = graph_.call(reshape, {operand(index)}, NewShape{{directions, gates, hidden, hidden}});
    weight = graph_.call(pad, {weight},
                         Pad{.low = {0, 0, 0, 0}, .high = {0, 0, panels * kPanelColumns - hidden, 0}});
    weight = graph_.call(reshape, {weight}, NewShape{{directions, gates, panels, kPanelColumns, hidden}});
    return graph_.call(transpose, {weight}, Permutation{{0, 2, 4, 1, 3}});
  }
  std::vector<Value*> results(const Node* steps) {
    std::vector<Value*> results = steps->results;
    for (Value*& result : results) {
      if (dtype_ != wide_) result = graph_.call(convert, {result}, Convert{dtype_});
    }
    return results;
  }

 private:
  Graph& graph_;
  const Node& node_;
  DType dtype_, wide_;
};

std::vector<Value*> decompose_lstm(Graph& graph, const Node& node) {
  Layer layer(graph, node);
  Value* gates = graph.call(linear, {layer.operand(0), layer.operand(3), layer.summed_biases(5)});
  return layer.results(
      graph.add(lstm_steps, {gates, layer.operand(1), layer.operand(2), layer.packed(4, 4)}));
}
std::vector<Value*> decompose_gru(Graph& graph, const Node& node) {
  Layer layer(graph, node);
  Value* gates = graph.call(linear, {layer.operand(0), layer.operand(2), layer.operand(4)});
  return layer.results(graph.add(gru_steps, {gates, layer.operand(1), layer.packed(3, 3), layer.operand(5)}));
}
std::vector<Value*> decompose_rnn(Graph& graph, const Node& node) {
  Layer layer(graph, node);
  Value* gates = graph.call(linear, {layer.operand(0), layer.operand(2), layer.summed_biases(4)});
  return layer.results(
      graph.add(rnn_steps, {gates, layer.operand(1), layer.packed(3, 1)}, node.attributes<Rnn>()));
}

Samples lstm_samples() {
  return {sample({f32({length(), 2, 3}), f32({1, 2, 4}), f32({1, 2, 4}), f32({16, 3}), f32({16, 4}),
                  f32({16}), f32({16})}),
          sample({f32({5, batch(), 3}), f32({2, batch(), 20}), f32({2, batch(), 20}), f32({160, 3}),
                  f32({160, 20})})};
}
Samples lstm_steps_samples() {
  return {sample({f32({length(), 2, 16}), f32({1, 2, 4}), f32({1, 2, 4}), f32({1, 1, 4, 4, 16})})};
}
Samples gru_samples() {
  return {sample({f32({length(), 2, 3}), f32({2, 2, 4}), f32({24, 3}), f32({24, 4}), f32({24}), f32({24})})};
}
Samples gru_steps_samples() {
  return {sample({f32({length(), 2, 12}), f32({1, 2, 4}), f32({1, 1, 4, 3, 16}), f32({12})})};
}
Samples rnn_samples() {
  return {
      sample({f32({length(), 2, 3}), f32({2, 2, 4}), f32({8, 3}), f32({8, 4}), f32({8}), f32({8})}, Rnn{}),
      sample({f32({5, batch(), 3}), f32({1, batch(), 20}), f32({20, 3}), f32({20, 20})}, Rnn{true})};
}
Samples rnn_steps_samples() {
  return {sample({f32({length(), 2, 4}), f32({1, 2, 4}), f32({1, 1, 4, 1, 16})}, Rnn{})};
}

}  // namespace

constinit const Op rnn = {
    .name = "rnn",
    .summary =
        "a plain recurrent layer over [T, B, I], in one or both directions: tanh or relu of two products",
    .operands = kGruOperands,
    .attributes = attribute_schema<Rnn>(),
    .infer = infer_rnn,
    .decompose = decompose_rnn,
    .samples = rnn_samples};
constinit const Op rnn_steps = {
    .name = "rnn_steps",
    .summary = "the steps of a plain recurrent layer from its input projections; packed weight",
    .operands = kRnnSteps,
    .attributes = attribute_schema<Rnn>(),
    .infer = infer_rnn_steps,
    .routine = "rnn",
    .samples = rnn_steps_samples};
constinit const Op lstm = {
    .name = "lstm",
    .summary = "an LSTM layer over [T, B, I], in one or both directions, gates in torch's order",
    .operands = kLstmOperands,
    .infer = infer_lstm,
    .decompose = decompose_lstm,
    .samples = lstm_samples};
constinit const Op lstm_steps = {
    .name = "lstm_steps",
    .summary = "the steps of an LSTM from the input projections of its gates; packed weight",
    .operands = kLstmSteps,
    .infer = infer_lstm_steps,
    .routine = "lstm",
    .samples = lstm_steps_samples};
constinit const Op gru = {
    .name = "gru",
    .summary = "a GRU layer over [T, B, I], in one or both directions, gates in torch's order",
    .operands = kGruOperands,
    .infer = infer_gru,
    .decompose = decompose_gru,
    .samples = gru_samples};
constinit const Op gru_steps = {
    .name = "gru_steps",
    .summary = "the steps of a GRU from the input projections of its gates; packed weight",
    .operands = kGruSteps,
    .infer = infer_gru_steps,
    .routine = "gru",
    .samples = gru_steps_samples};

}  // namespace ingot::core::ops
