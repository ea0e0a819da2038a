// SPDX-License-Identifier: Apache-2.0
// The steps of lstm and gru, one direction of one layer; the inputs' part of the gates is given.
#include <algorithm>

#include "routines/recurrent.h"
#include "routines/routines.h"
#include "support/error.h"

namespace ingot::core::routines {
namespace {

template <typename Real>
Real* data(const TensorView& view) {
  return reinterpret_cast<Real*>(view.data);
}

// Checks what an engine file could get wrong.
RecurrentShape shape_of(const RoutineCall& call, int64_t gates, size_t states) {
  const auto& input = call.inputs[0].shape;
  bool fits = call.inputs.size() >= 2 + states && call.outputs.size() == 1 + states && input.size() == 3 &&
              input[2] % gates == 0;
  const auto is = [&](const TensorView& view, std::vector<int64_t> shape) {
    return view.shape == shape && view.dtype == call.inputs[0].dtype;
  };
  for (size_t i = 1; fits && i <= states; ++i) {
    const std::vector<int64_t> state{input[1], input[2] / gates};
    fits = is(call.inputs[i], state) && is(call.outputs[i], state);
  }
  fits = fits && is(call.outputs[0], {input[0], input[1], input[2] / gates}) &&
         is(call.inputs[1 + states], {input[2] / gates, input[2]});
  if (fits && call.inputs.size() > 2 + states) fits = is(call.inputs[2 + states], {input[2]});
  if (!fits) throw UserError("INGOT-U332", "the tensors of a recurrent routine do not fit together");
  return {.steps = input[0],
          .batch = input[1],
          .hidden = input[2] / gates,
          .gates = gates,
          .reverse = flag_attribute(call, "reverse")};
}

// Inputs: gates [T, B, 4H], hidden [B, H], cell [B, H], weight [H, 4H]. Outputs: [T, B, H], [B, H], [B, H].
template <typename Real>
void run_lstm(const RoutineCall& call) {
  const RecurrentShape shape = shape_of(call, 4, 2);
  const int64_t state = shape.batch * shape.hidden, width = 4 * shape.hidden;
  Real *hidden = data<Real>(call.outputs[1]), *cell = data<Real>(call.outputs[2]);
  std::copy_n(data<Real>(call.inputs[1]), state, hidden);
  std::copy_n(data<Real>(call.inputs[2]), state, cell);
  std::vector<Real> sums(static_cast<size_t>(shape.batch * width));
  for (int64_t i = 0; i < shape.steps; ++i) {
    const int64_t step = shape.step_at(i);
    multiply_state(data<Real>(call.inputs[0]) + step * shape.batch * width, width, hidden,
                   data<Real>(call.inputs[3]), sums.data(), shape, call.pool);
    for (int64_t row = 0; row < shape.batch; ++row) {
      lstm_gates(sums.data() + row * width, cell + row * shape.hidden, hidden + row * shape.hidden,
                 shape.hidden);
    }
    std::copy_n(hidden, state, data<Real>(call.outputs[0]) + step * state);
  }
}

// Inputs: gates [T, B, 3H], hidden [B, H], weight [H, 3H], bias [3H]. Outputs: [T, B, H], [B, H].
template <typename Real>
void run_gru(const RoutineCall& call) {
  const RecurrentShape shape = shape_of(call, 3, 1);
  const int64_t state = shape.batch * shape.hidden, width = 3 * shape.hidden;
  Real* hidden = data<Real>(call.outputs[1]);
  std::copy_n(data<Real>(call.inputs[1]), state, hidden);
  std::vector<Real> sums(static_cast<size_t>(shape.batch * width));
  const Real* bias = call.inputs.size() > 3 ? data<Real>(call.inputs[3]) : nullptr;
  for (int64_t i = 0; i < shape.steps; ++i) {
    const int64_t step = shape.step_at(i);
    multiply_state(bias, 0, hidden, data<Real>(call.inputs[2]), sums.data(), shape, call.pool);
    const Real* input = data<Real>(call.inputs[0]) + step * shape.batch * width;
    for (int64_t row = 0; row < shape.batch; ++row) {
      gru_gates(input + row * width, sums.data() + row * width, hidden + row * shape.hidden, shape.hidden);
    }
    std::copy_n(hidden, state, data<Real>(call.outputs[0]) + step * state);
  }
}

bool is_double(const RoutineCall& call) {
  const DType dtype = call.inputs[0].dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64)
    throw UnsupportedError("INGOT-N331", "recurrent routines do not know " + std::string(name(dtype)));
  return dtype == DType::kF64;
}

}  // namespace

void lstm(const RoutineCall& call) {
  if (is_double(call)) {
    run_lstm<double>(call);
  } else {
    run_lstm<float>(call);
  }
}
void gru(const RoutineCall& call) {
  if (is_double(call)) {
    run_gru<double>(call);
  } else {
    run_gru<float>(call);
  }
}

}  // namespace ingot::core::routines
