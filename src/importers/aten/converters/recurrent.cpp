// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: one node per layer.
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

constexpr Converter kRecurrentConverters[] = {
    {"aten.gru.input", gru},
    {"aten.lstm.input", lstm},
    {"aten.rnn_relu.input", rnn<true>},
    {"aten.rnn_tanh.input", rnn<false>},
};

}  // namespace

std::span<const Converter> recurrent_converters() { return kRecurrentConverters; }

}  // namespace ingot::core::aten
