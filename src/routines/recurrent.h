// SPDX-License-Identifier: Apache-2.0
// The inner loops of recurrent layers: one step for a few columns of the state, with all gates.
#pragma once

#include <cstdint>

namespace ingot::core::routines {

// Columns of the state whose gates are computed together. The recurrent weight is packed for it: [directions,
// panels, hidden, gates, kPanelColumns], zero-padded after the last column.
constexpr int64_t kPanelColumns = 16;
constexpr int64_t kMostGates = 4;

// A state of `rows` batch rows and `hidden` columns; row i begins at data + i * stride.
template <typename Real>
struct StateRows {
  const Real* data;
  int64_t rows, stride, hidden;
};

// sums[rows, gates, kPanelColumns] += state * panel; gates: 1, 3 or 4.
void add_product(const StateRows<float>& state, const float* panel, int64_t gates, float* sums);
void add_product(const StateRows<double>& state, const double* panel, int64_t gates, double* sums);

// The new state of `count` columns of one batch row, from the accumulated gates in torch's order,
// kPanelColumns apart. lstm: input, forget, cell, output. gru: reset, update, new, where `inputs` holds the
// input projections, `distance` apart, and `sums` those of the state. plain: tanh or relu of the sums.
void lstm_gates(const float* sums, float* cell, float* after, int64_t count);
void lstm_gates(const double* sums, double* cell, double* after, int64_t count);
void gru_gates(const float* inputs, int64_t distance, const float* sums, const float* before, float* after,
               int64_t count);
void gru_gates(const double* inputs, int64_t distance, const double* sums, const double* before,
               double* after, int64_t count);
void plain_gate(const float* sums, bool is_relu, float* after, int64_t count);
void plain_gate(const double* sums, bool is_relu, double* after, int64_t count);

}  // namespace ingot::core::routines
