// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: one node per layer, and cells by their formulas.
#include "ops/recurrent.h"
#include "importers/aten/converters/converters.h"
#include "importers/aten/converters/terms.h"

namespace ingot::core::aten {
namespace {

constexpr int64_t kMostLayers = 4096;

// The states of all layers and directions, [layers * directions, B, H]: initial and final ones of each layer.
class States {
 public:
  States(Call& call, std::vector<core::Value*> initial, int64_t directions)
      : call_(call), initial_(std::move(initial)), last_(initial_.size()), directions_(directions) {}
  core::Value* initial(size_t kind, int64_t layer) {
    call_.require(initial_[kind]->type.rank() == 3, "a state of unexpected rank");
    return sliced(call_, initial_[kind], 0, layer * directions_, (layer + 1) * directions_);
  }
  void end(size_t kind, core::Value* state) { last_[kind].push_back(state); }
  core::Value* last(size_t kind) { return concatenated(call_, last_[kind], 0); }
  size_t kinds() const { return initial_.size(); }

 private:
  Call& call_;
  std::vector<core::Value*> initial_;
  std::vector<std::vector<core::Value*>> last_;
  int64_t directions_;
};

// The parameters of one layer: input weight, hidden weight, biases; for all directions.
std::vector<core::Value*> layer_parameters(Call& call, const std::vector<core::Value*>& params, size_t layer,
                                           size_t directions, size_t kinds) {
  std::vector<core::Value*> result;
  for (size_t kind = 0; kind < kinds; ++kind) {
    std::vector<core::Value*> both;
    for (size_t direction = 0; direction < directions; ++direction)
      both.push_back(params[(layer * directions + direction) * kinds + kind]);
    result.push_back(concatenated(call, std::move(both), 0));
  }
  return result;
}

// In the recorded shape: torch 2.11's CUDA build records a last state with one more dim of size 1.
void give_state(Call& call, size_t index, core::Value* state) {
  if (index < call.result_count() && call.node().outputs[index]) {
    const Shape& recorded = call.result_meta(index).shape;
    if (recorded.size() > state->type.rank() && product(recorded) == element_count(state->type))
      state = reshaped(call, state, recorded);
  }
  call.give(index, state);
}

template <typename... Attributes>
void run_layers(Call& call, const Op& op, std::vector<core::Value*> initial, Attributes... attributes) {
  if (call.flag("train") && call.number("dropout") != 0)
    call.refuse("dropout that is not in evaluation mode");
  core::Value* x = call.tensor("input");
  call.require(x->type.rank() == 2 || x->type.rank() == 3, "an input of unexpected rank");
  const bool single = x->type.rank() == 2, batch_first = call.flag("batch_first");
  if (single) x = unsqueezed(call, x, 1);
  if (batch_first && !single) x = swapped(call, x, 0, 1);
  if (single) {
    for (core::Value*& state : initial) state = unsqueezed(call, state, 1);
  }
  const std::vector<core::Value*> params = call.tensors("params");
  const size_t directions = call.flag("bidirectional") ? 2 : 1, kinds = call.flag("has_biases") ? 4 : 2;
  const int64_t given_layers = call.integer("num_layers");
  call.require(given_layers > 0 && given_layers <= kMostLayers, "too many layers");
  const auto layers = static_cast<size_t>(given_layers);
  if (params.size() != layers * directions * kinds) call.refuse("projections of the hidden state");
  States states(call, std::move(initial), static_cast<int64_t>(directions));
  for (size_t layer = 0; layer < layers; ++layer) {
    std::vector<core::Value*> operands{x};
    for (size_t kind = 0; kind < states.kinds(); ++kind)
      operands.push_back(states.initial(kind, static_cast<int64_t>(layer)));
    for (core::Value* parameter : layer_parameters(call, params, layer, directions, kinds))
      operands.push_back(parameter);
    const core::Node* node = call.graph().add(op, std::move(operands), attributes...);
    x = node->results[0];
    for (size_t kind = 0; kind < states.kinds(); ++kind) states.end(kind, node->results[1 + kind]);
  }
  if (batch_first && !single) x = swapped(call, x, 0, 1);
  call.give(0, single ? without_axes(call, x, {1}) : x);
  for (size_t kind = 0; kind < states.kinds(); ++kind) {
    core::Value* last = states.last(kind);
    give_state(call, 1 + kind, single ? without_axes(call, last, {1}) : last);
  }
}

void lstm(Call& call) {
  std::vector<core::Value*> states = call.tensors("hx");
  call.require(states.size() == 2, "a number of states other than two");
  run_layers(call, ops::lstm, std::move(states));
}
void gru(Call& call) { run_layers(call, ops::gru, {call.tensor("hx")}); }
template <bool kRelu>
void rnn(Call& call) {
  run_layers(call, ops::rnn, {call.tensor("hx")}, ops::Rnn{kRelu});
}

// ---- cells: one step of one layer ----
Term product(Call& call, core::Value* x, const char* weight, const char* bias) {
  return {call, emit(call, ops::linear, {x, call.tensor(weight), call.optional_tensor(bias)})};
}
// Block `index` of `count` along the last dim.
Term block(Call& call, const Term& gates, int64_t index, int64_t count) {
  const size_t axis = gates.shape().size() - 1;
  const Dim width = floor_divide(extent(call, gates, axis), count);
  return {call, sliced(call, gates, axis, width * Dim(index), width * Dim(index + 1))};
}
void gru_cell(Call& call) {
  const Term before = operand_term(call, "hx");
  const Term input = product(call, call.tensor("input"), "w_ih", "b_ih"),
             state = product(call, before, "w_hh", "b_hh");
  const auto gate = [&](int64_t i) {
    return (block(call, input, i, 3) + block(call, state, i, 3)).apply(ops::sigmoid);
  };
  const Term candidate = (block(call, input, 2, 3) + gate(0) * block(call, state, 2, 3)).apply(ops::tanh);
  call.give(candidate + gate(1) * (before - candidate));
}
void lstm_cell(Call& call) {
  const std::vector<core::Value*> states = call.tensors("hx");
  call.require(states.size() == 2, "a number of states other than two");
  const Term gates =
      product(call, call.tensor("input"), "w_ih", "b_ih") + product(call, states[0], "w_hh", "b_hh");
  const auto gate = [&](int64_t i, const Op& op) { return block(call, gates, i, 4).apply(op); };
  const Term cell =
      gate(1, ops::sigmoid) * Term(call, states[1]) + gate(0, ops::sigmoid) * gate(2, ops::tanh);
  call.give(0, gate(3, ops::sigmoid) * cell.apply(ops::tanh));
  call.give(1, cell);
}
template <const Op& kFunction>
void plain_cell(Call& call) {
  const Term sum =
      product(call, call.tensor("input"), "w_ih", "b_ih") + product(call, call.tensor("hx"), "w_hh", "b_hh");
  call.give(sum.apply(kFunction));
}

constexpr Converter kRecurrentConverters[] = {
    {"aten.gru.input", gru},
    {"aten.gru_cell.default", gru_cell, kComposed},
    {"aten.lstm.input", lstm},
    {"aten.lstm_cell.default", lstm_cell, kComposed},
    {"aten.rnn_relu.input", rnn<true>},
    {"aten.rnn_relu_cell.default", plain_cell<ops::relu>, kComposed},
    {"aten.rnn_tanh.input", rnn<false>},
    {"aten.rnn_tanh_cell.default", plain_cell<ops::tanh>, kComposed},
};

}  // namespace

std::span<const Converter> recurrent_converters() { return kRecurrentConverters; }

}  // namespace ingot::core::aten
