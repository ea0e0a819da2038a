// SPDX-License-Identifier: Apache-2.0
// One direction of one layer of recurrent networks. The inputs' part of all steps is one `linear`; what
// remains, step by step, is a routine.
#include "ops/attributes.h"
#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

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

// Results: all hidden states [T, B, H], and the last of each kind of state [B, H].
Types result_types(const Node& node, size_t states) {
  require_same_dtype(node);
  require_rank(node, 0, 3);
  require_rank(node, 1, 2);
  const TensorType &x = node.operand_type(0), &hidden = node.operand_type(1);
  Types types{{x.dtype, {x.shape[0], x.shape[1], hidden.shape[1]}, {}}};
  for (size_t i = 0; i < states; ++i) {
    require_shape(node, 1 + i, {x.shape[1], hidden.shape[1]});
    types.push_back({x.dtype, hidden.shape, {}});
  }
  return types;
}

// `first` is the operand after the states: input weight, hidden weight, biases.
Types infer_layer(const Node& node, size_t states, int64_t gates) {
  const Dim hidden = node.operand_type(1).shape.back();
  const size_t first = 1 + states;
  require_shape(node, first, {Dim(gates) * hidden, node.operand_type(0).shape.back()});
  require_shape(node, first + 1, {Dim(gates) * hidden, hidden});
  for (size_t i = first + 2; i < first + 4; ++i) {
    if (node.has_operand(i)) require_shape(node, i, {Dim(gates) * hidden});
  }
  return result_types(node, states);
}
Types infer_steps(const Node& node, size_t states, int64_t gates) {
  Types types = result_types(node, states);
  require(types[0].dtype == DType::kF32 || types[0].dtype == DType::kF64, node,
          "the steps compute in f32 or f64");
  const Dim hidden = node.operand_type(1).shape[1], width = Dim(gates) * hidden;
  require(node.operand_type(0).shape[2] == width, node,
          "the gates must be one block of the hidden size each");
  require_shape(node, 1 + states, {hidden, width});
  if (node.has_operand(2 + states)) require_shape(node, 2 + states, {width});
  return types;
}
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
  Value* transposed(size_t index) { return graph_.call(transpose, {operand(index)}, Permutation{{1, 0}}); }
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
  Value *bias = layer.operand(5), *hidden_bias = layer.operand(6);
  if (bias != nullptr && hidden_bias != nullptr)
    bias = graph.call(add, {bias, hidden_bias});
  else if (bias == nullptr)
    bias = hidden_bias;
  Value* gates = graph.call(linear, {layer.operand(0), layer.operand(3), bias});
  return layer.results(graph.add(lstm_steps, {gates, layer.operand(1), layer.operand(2), layer.transposed(4)},
                                 node.attributes<Recurrence>()));
}
std::vector<Value*> decompose_gru(Graph& graph, const Node& node) {
  Layer layer(graph, node);
  Value* gates = graph.call(linear, {layer.operand(0), layer.operand(2), layer.operand(4)});
  return layer.results(graph.add(gru_steps, {gates, layer.operand(1), layer.transposed(3), layer.operand(5)},
                                 node.attributes<Recurrence>()));
}

Samples lstm_samples() {
  return {sample({f32({length(), 2, 3}), f32({2, 4}), f32({2, 4}), f32({16, 3}), f32({16, 4}), f32({16}),
                  f32({16})},
                 Recurrence{}),
          sample({f32({5, batch(), 3}), f32({batch(), 20}), f32({batch(), 20}), f32({80, 3}), f32({80, 20})},
                 Recurrence{true})};
}
Samples lstm_steps_samples() {
  return {sample({f32({length(), 2, 16}), f32({2, 4}), f32({2, 4}), f32({4, 16})}, Recurrence{})};
}
Samples gru_samples() {
  return {sample({f32({length(), 2, 3}), f32({2, 4}), f32({12, 3}), f32({12, 4}), f32({12}), f32({12})},
                 Recurrence{true})};
}
Samples gru_steps_samples() {
  return {sample({f32({length(), 2, 12}), f32({2, 4}), f32({4, 12}), f32({12})}, Recurrence{})};
}

}  // namespace

constinit const Op lstm = {.name = "lstm",
                           .summary = "one direction of an LSTM layer over [T, B, I], gates in torch's order",
                           .operands = kLstmOperands,
                           .attributes = attribute_schema<Recurrence>(),
                           .infer = infer_lstm,
                           .decompose = decompose_lstm,
                           .samples = lstm_samples};
constinit const Op lstm_steps = {
    .name = "lstm_steps",
    .summary = "the steps of an LSTM whose inputs' part of the gates is given; weight [H, 4H]",
    .operands = kLstmSteps,
    .attributes = attribute_schema<Recurrence>(),
    .infer = infer_lstm_steps,
    .routine = "lstm",
    .samples = lstm_steps_samples};
constinit const Op gru = {.name = "gru",
                          .summary = "one direction of a GRU layer over [T, B, I], gates in torch's order",
                          .operands = kGruOperands,
                          .attributes = attribute_schema<Recurrence>(),
                          .infer = infer_gru,
                          .decompose = decompose_gru,
                          .samples = gru_samples};
constinit const Op gru_steps = {
    .name = "gru_steps",
    .summary = "the steps of a GRU whose inputs' part of the gates is given; weight [H, 3H]",
    .operands = kGruSteps,
    .attributes = attribute_schema<Recurrence>(),
    .infer = infer_gru_steps,
    .routine = "gru",
    .samples = gru_steps_samples};

}  // namespace ingot::core::ops
