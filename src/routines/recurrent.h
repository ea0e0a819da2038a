// SPDX-License-Identifier: Apache-2.0
// What recurrent layers share: the product of the hidden state with the recurrent weight, and the gates'
// functions.
#pragma once

#include <cstdint>
#include <vector>

#include "routines/routine.h"

namespace ingot::core::routines {

// Steps of one direction. Tensors are [steps, batch, gates * hidden] in, [steps, batch, hidden] out, weight
// [hidden, gates * hidden] (transposed against torch, so that its rows stream).
struct RecurrentShape {
  int64_t steps, batch, hidden, gates;
  bool reverse;
  int64_t step_at(int64_t i) const { return reverse ? steps - 1 - i : i; }
};

// sums[batch, width] = start[batch, width] + hidden[batch, hidden] * weight[hidden, width]; `start` null: 0;
// a row of `start` is used again for each batch row if `start_stride` is 0.
void multiply_state(const float* start, int64_t start_stride, const float* hidden, const float* weight,
                    float* sums, const RecurrentShape& shape, ThreadPool* pool);
void multiply_state(const double* start, int64_t start_stride, const double* hidden, const double* weight,
                    double* sums, const RecurrentShape& shape, ThreadPool* pool);

// One step's new state for one batch row, from the sums of its gates in torch's order.
// lstm: input, forget, cell, output. gru: reset, update, new, where `recurrent` holds the state's part of the
// sums.
void lstm_gates(const float* sums, float* cell, float* hidden, int64_t count);
void lstm_gates(const double* sums, double* cell, double* hidden, int64_t count);
void gru_gates(const float* input, const float* recurrent, float* hidden, int64_t count);
void gru_gates(const double* input, const double* recurrent, double* hidden, int64_t count);

}  // namespace ingot::core::routines
