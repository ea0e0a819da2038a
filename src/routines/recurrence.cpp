// SPDX-License-Identifier: Apache-2.0
// The steps of lstm, gru and rnn layers; the input projections of the gates are given.
// docs/design/005-recurrent-layers.md describes how the work is split over threads.
#include <algorithm>
#include <vector>

#include "routines/recurrent.h"
#include "routines/routines.h"
#include "support/error.h"
#include "support/stepped_loop.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

enum class CellKind { kLstm, kGru, kTanh, kRelu };

struct Recurrence {
  std::string_view routine;
  CellKind cell;
  int64_t gates;
  size_t states;
};

struct Sizes {
  int64_t steps, batch, directions, hidden, gates;
  int64_t panels() const { return (hidden + kPanelColumns - 1) / kPanelColumns; }
  int64_t panel_size() const { return hidden * gates * kPanelColumns; }
  int64_t products() const { return directions * batch * panels() * panel_size(); }  // of one step
};

Sizes sizes_of(const RoutineCall& call, const Recurrence& recurrence) {
  const auto require = [&](bool fits) { require_fit(fits, recurrence.routine); };
  const auto [gates, states] = std::pair(recurrence.gates, recurrence.states);
  require(call.inputs.size() >= 2 + states && call.outputs.size() == 1 + states);
  const auto &input = call.inputs[0].shape, &state = call.inputs[1].shape;
  require(input.size() == 3 && state.size() == 3 && (state[0] == 1 || state[0] == 2));
  const Sizes sizes{
      .steps = input[0], .batch = input[1], .directions = state[0], .hidden = state[2], .gates = gates};
  const auto require_shape = [&](const TensorView& view, const std::vector<int64_t>& shape) {
    require(view.shape == shape && view.dtype == call.inputs[0].dtype);
  };
  const int64_t width = sizes.directions * sizes.hidden;
  require_shape(call.inputs[0], {sizes.steps, sizes.batch, width * gates});
  require_shape(call.outputs[0], {sizes.steps, sizes.batch, width});
  for (size_t i = 1; i <= states; ++i) {
    require_shape(call.inputs[i], {sizes.directions, sizes.batch, sizes.hidden});
    require_shape(call.outputs[i], call.inputs[i].shape);
  }
  require_shape(call.inputs[1 + states],
                {sizes.directions, sizes.panels(), sizes.hidden, gates, kPanelColumns});
  if (call.inputs.size() > 2 + states) require_shape(call.inputs[2 + states], {width * gates});
  return sizes;
}

template <typename Real>
Real* data(const TensorView& view) {
  return reinterpret_cast<Real*>(view.data);
}

// A part of one step of one direction.
struct Part {
  int64_t direction, first_panel, end_panel, first_row, end_row;
};

constexpr int64_t kRows = 4;  // batch rows accumulated together

template <typename Real>
class Layer {
 public:
  Layer(const RoutineCall& call, const Sizes& sizes, CellKind cell)
      : sizes_(sizes),
        kind_(cell),
        gates_(data<Real>(call.inputs[0])),
        initial_(data<Real>(call.inputs[1])),
        output_(data<Real>(call.outputs[0])),
        last_(data<Real>(call.outputs[1])) {
    const size_t states = call.outputs.size() - 1;
    weight_ = data<Real>(call.inputs[1 + states]);
    if (call.inputs.size() > 2 + states) bias_ = data<Real>(call.inputs[2 + states]);
    if (states < 2) return;
    cell_ = data<Real>(call.outputs[2]);
    std::copy_n(data<Real>(call.inputs[2]), sizes.directions * sizes.batch * sizes.hidden, cell_);
  }

  // The second direction goes from the last step to the first.
  void run(int64_t step, const Part& part) const {
    const int64_t width = sizes_.directions * sizes_.hidden, time = time_of(step, part.direction);
    StateRows<Real> before{initial_ + part.direction * sizes_.batch * sizes_.hidden, 0, sizes_.hidden,
                           sizes_.hidden};
    if (step > 0) {
      before.data =
          output_ + time_of(step - 1, part.direction) * sizes_.batch * width + part.direction * sizes_.hidden;
      before.stride = width;
    }
    for (int64_t panel = part.first_panel; panel < part.end_panel; ++panel) {
      for (int64_t row = part.first_row; row < part.end_row; row += kRows) {
        StateRows<Real> rows = before;
        rows.data += row * before.stride;
        rows.rows = std::min(kRows, part.end_row - row);
        run_tile(rows, part.direction, panel, time * sizes_.batch + row, row);
      }
    }
  }

  void copy_last_states() const {
    for (int64_t direction = 0; direction < sizes_.directions; ++direction) {
      for (int64_t row = 0; row < sizes_.batch; ++row) {
        const int64_t at = direction * sizes_.batch + row;
        const int64_t end = (time_of(sizes_.steps - 1, direction) * sizes_.batch + row) * sizes_.directions;
        const Real* from =
            sizes_.steps == 0 ? initial_ + at * sizes_.hidden : output_ + (end + direction) * sizes_.hidden;
        std::copy_n(from, sizes_.hidden, last_ + at * sizes_.hidden);
      }
    }
  }

 private:
  int64_t time_of(int64_t step, int64_t direction) const {
    return direction == 0 ? step : sizes_.steps - 1 - step;
  }

  // `output_row`: of [steps, batch] rows; `row`: of the batch.
  void run_tile(const StateRows<Real>& before, int64_t direction, int64_t panel, int64_t output_row,
                int64_t row) const {
    const int64_t column = panel * kPanelColumns, count = std::min(kPanelColumns, sizes_.hidden - column);
    const int64_t gates = sizes_.gates, first_gate = direction * gates * sizes_.hidden + column;
    const int64_t gates_stride = sizes_.directions * gates * sizes_.hidden;
    const Real* inputs = gates_ + output_row * gates_stride + first_gate;
    alignas(64) Real sums[kRows * kMostGates * kPanelColumns] = {};
    if (kind_ != CellKind::kGru) {
      start(inputs, gates_stride, count, before.rows, sums);
    } else if (bias_ != nullptr) {
      start(bias_ + first_gate, 0, count, before.rows, sums);
    }
    const Real* weight = weight_ + (direction * sizes_.panels() + panel) * sizes_.panel_size();
    add_product(before, weight, gates, sums);
    for (int64_t i = 0; i < before.rows; ++i) {
      const Real* own = sums + i * gates * kPanelColumns;
      Real* after = output_ + ((output_row + i) * sizes_.directions + direction) * sizes_.hidden + column;
      if (kind_ == CellKind::kLstm) {
        lstm_gates(own, cell_ + (direction * sizes_.batch + row + i) * sizes_.hidden + column, after, count);
      } else if (kind_ == CellKind::kGru) {
        gru_gates(inputs + i * gates_stride, sizes_.hidden, own, before.data + i * before.stride + column,
                  after, count);
      } else {
        plain_gate(own, kind_ == CellKind::kRelu, after, count);
      }
    }
  }

  void start(const Real* from, int64_t stride, int64_t count, int64_t rows, Real* sums) const {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t gate = 0; gate < sizes_.gates; ++gate, sums += kPanelColumns)
        std::copy_n(from + i * stride + gate * sizes_.hidden, count, sums);
    }
  }

  Sizes sizes_;
  CellKind kind_;
  const Real *gates_, *initial_, *weight_ = nullptr, *bias_ = nullptr;
  Real *output_, *last_, *cell_ = nullptr;
};

// Directions and groups of batch rows are independent: each thread runs some of them from start to end.
template <typename Real>
void run_chains(const Layer<Real>& layer, const Sizes& sizes, ThreadPool* pool, int64_t groups) {
  const int64_t share = (sizes.batch + groups - 1) / groups;
  auto run = [&](int64_t begin, int64_t end, int) {
    for (int64_t chain = begin; chain < end; ++chain) {
      const int64_t row = chain % groups * share;
      const Part part{chain / groups, 0, sizes.panels(), row, std::min(row + share, sizes.batch)};
      for (int64_t step = 0; step < sizes.steps; ++step) layer.run(step, part);
    }
  };
  if (pool == nullptr)
    run(0, sizes.directions * groups, 0);
  else
    pool->parallel_for(sizes.directions * groups, 1, run);
}

// Each thread owns some panels of the weight, which stay in its cache; a barrier follows each step.
template <typename Real>
void run_in_lockstep(const Layer<Real>& layer, const Sizes& sizes, ThreadPool* pool) {
  const int64_t panels = sizes.panels(), all = sizes.directions * panels;
  const int64_t parts = std::min<int64_t>(pool->threads(), all);
  run_steps(pool, sizes.steps, static_cast<int>(parts), [&](int64_t step, int part) {
    const int64_t begin = all * part / parts, end = all * (part + 1) / parts;
    for (int64_t direction = 0; direction < sizes.directions; ++direction) {
      const int64_t first = direction * panels;
      layer.run(step, {direction, std::max(begin - first, int64_t{0}), std::min(end - first, panels), 0,
                       sizes.batch});
    }
  });
}

template <typename Real>
void run_layer(const RoutineCall& call, const Sizes& sizes, CellKind cell) {
  constexpr int64_t kWorthThreads = 1 << 17;  // products; smaller layers finish before other threads wake up
  constexpr int64_t kWorthMeeting =
      1 << 14;  // products per thread and step; smaller ones cost as much as the barrier
  constexpr int64_t kCachedWeight =
      1024 * 1024;  // bytes of one direction that every core may read on its own
  const Layer<Real> layer(call, sizes, cell);
  const bool threaded = call.pool != nullptr && sizes.products() * sizes.steps >= kWorthThreads;
  const int64_t threads = threaded ? call.pool->threads() : 1;
  const int64_t wanted = (threads + sizes.directions - 1) / sizes.directions;
  const bool cached =
      sizes.panels() * sizes.panel_size() * static_cast<int64_t>(sizeof(Real)) <= kCachedWeight;
  const int64_t groups = cached ? std::clamp(sizes.batch / kRows, int64_t{1}, wanted) : 1;
  if (sizes.directions * groups >= threads || sizes.products() < kWorthMeeting * threads)
    run_chains(layer, sizes, threaded ? call.pool : nullptr, groups);
  else
    run_in_lockstep(layer, sizes, call.pool);
  layer.copy_last_states();
}

void run_typed(const RoutineCall& call, const Recurrence& recurrence) {
  const Sizes sizes = sizes_of(call, recurrence);
  const DType dtype = call.inputs[0].dtype;
  if (dtype == DType::kF32)
    run_layer<float>(call, sizes, recurrence.cell);
  else if (dtype == DType::kF64)
    run_layer<double>(call, sizes, recurrence.cell);
  else
    throw UnsupportedError("INGOT-N331", "recurrent routines do not support " + std::string(name(dtype)));
}

}  // namespace

// Inputs: gates [T, B, D*4H], hidden [D, B, H], cell [D, B, H], packed weight.
// Outputs: [T, B, D*H], [D, B, H], [D, B, H].
void lstm(const RoutineCall& call) { run_typed(call, {"lstm", CellKind::kLstm, 4, 2}); }
// Inputs: gates [T, B, D*3H], hidden [D, B, H], packed weight, bias [D*3H]. Outputs: [T, B, D*H], [D, B, H].
void gru(const RoutineCall& call) { run_typed(call, {"gru", CellKind::kGru, 3, 1}); }
// Inputs: gates [T, B, D*H], hidden [D, B, H], packed weight. Outputs: [T, B, D*H], [D, B, H].
void rnn(const RoutineCall& call) {
  run_typed(call, {"rnn", attribute<bool>(call, "relu") ? CellKind::kRelu : CellKind::kTanh, 1, 1});
}

}  // namespace ingot::core::routines
