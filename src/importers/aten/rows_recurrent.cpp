// SPDX-License-Identifier: Apache-2.0
// Recurrent networks: one node of ours a layer and direction.
#include "importers/aten/building.h"
#include "importers/aten/rows.h"

namespace ingot::core::aten {
namespace {

// The states of all layers and directions, [layers * directions, B, H]: what each starts from, and what it
// ends in.
class States {
 public:
  States(Call& call, std::vector<core::Value*> initial)
      : call_(call), initial_(std::move(initial)), last_(initial_.size()) {}
  core::Value* initial(size_t kind, int64_t layer) { return selected(call_, initial_[kind], 0, layer); }
  void end(size_t kind, core::Value* state) { last_[kind].push_back(unsqueezed(call_, state, 0)); }
  core::Value* last(size_t kind) { return concatenated(call_, last_[kind], 0); }
  size_t kinds() const { return initial_.size(); }

 private:
  Call& call_;
  std::vector<core::Value*> initial_;
  std::vector<std::vector<core::Value*>> last_;
};

void run_layers(Call& call, const Op& op, std::vector<core::Value*> initial) {
  if (call.flag("train") && call.number("dropout") != 0)
    call.refuse("dropout that is not in evaluation mode");
  core::Value* x = call.tensor("input");
  const bool single = x->type.rank() == 2, batch_first = call.flag("batch_first");
  if (single) x = unsqueezed(call, x, 1);
  if (batch_first && !single) x = swapped(call, x, 0, 1);
  if (single) {
    for (core::Value*& state : initial) state = unsqueezed(call, state, 1);
  }
  const std::vector<core::Value*> params = call.tensors("params");
  const size_t directions = call.flag("bidirectional") ? 2 : 1, biases = call.flag("has_biases") ? 2 : 0;
  States states(call, std::move(initial));
  if (params.size() != static_cast<size_t>(call.integer("num_layers")) * directions * (2 + biases))
    call.refuse("projections of the hidden state");
  for (int64_t layer = 0; layer < call.integer("num_layers"); ++layer) {
    std::vector<core::Value*> outputs;
    for (size_t direction = 0; direction < directions; ++direction) {
      const auto number = layer * static_cast<int64_t>(directions) + static_cast<int64_t>(direction);
      std::vector<core::Value*> operands{x};
      for (size_t kind = 0; kind < states.kinds(); ++kind) operands.push_back(states.initial(kind, number));
      const auto first = params.begin() + number * static_cast<int64_t>(2 + biases);
      operands.insert(operands.end(), first, first + 2 + static_cast<ptrdiff_t>(biases));
      const core::Node* node = call.graph().add(op, std::move(operands), ops::Recurrence{direction == 1});
      outputs.push_back(node->results[0]);
      for (size_t kind = 0; kind < states.kinds(); ++kind) states.end(kind, node->results[1 + kind]);
    }
    x = concatenated(call, std::move(outputs), 2);
  }
  if (batch_first && !single) x = swapped(call, x, 0, 1);
  call.give(0, single ? without_axes(call, x, {1}) : x);
  for (size_t kind = 0; kind < states.kinds(); ++kind) {
    core::Value* last = states.last(kind);
    call.give(1 + kind, single ? without_axes(call, last, {1}) : last);
  }
}

void lstm(Call& call) { run_layers(call, ops::lstm, call.tensors("hx")); }
void gru(Call& call) { run_layers(call, ops::gru, {call.tensor("hx")}); }

constexpr Row kRows[] = {
    {"aten.gru.input", gru},
    {"aten.lstm.input", lstm},
};

}  // namespace

std::span<const Row> recurrent_rows() { return kRows; }

}  // namespace ingot::core::aten
