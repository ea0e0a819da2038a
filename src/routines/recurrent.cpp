// SPDX-License-Identifier: Apache-2.0
#include "routines/recurrent.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "support/target_clones.h"

#define INGOT_INLINE inline __attribute__((always_inline))

namespace ingot::core::routines {
namespace {

template <int Count, typename Body>
INGOT_INLINE void unrolled(const Body& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    (body(std::integral_constant<int, I>()), ...);
  }(std::make_integer_sequence<int, Count>());
}

// All accumulators stay in registers; each vector of the panel is loaded once for all rows.
template <size_t Bytes, int Rows, int Gates, typename Real>
INGOT_INLINE void multiply_rows(const StateRows<Real>& state, const Real* panel, Real* sums) {
  typedef Real Lanes __attribute__((vector_size(Bytes)));
  constexpr int kLanes = Bytes / sizeof(Real), kVectors = Gates * kPanelColumns / kLanes;
  Lanes total[Rows][kVectors];
  const auto each = [](const auto& body) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto vector) __attribute__((always_inline)) {
      unrolled<Rows>([&](auto row) __attribute__((always_inline)) { body(row, vector); });
    });
  };
  each([&](auto row, auto vector) __attribute__((always_inline)) {
    std::memcpy(&total[row][vector], sums + (row * kVectors + vector) * kLanes, Bytes);
  });
  for (int64_t k = 0; k < state.hidden; ++k, panel += Gates * kPanelColumns) {
    each([&](auto row, auto vector) __attribute__((always_inline)) {
      Lanes weight;
      std::memcpy(&weight, panel + vector * kLanes, Bytes);
      total[row][vector] += state.data[row * state.stride + k] * weight;
    });
  }
  each([&](auto row, auto vector) __attribute__((always_inline)) {
    std::memcpy(sums + (row * kVectors + vector) * kLanes, &total[row][vector], Bytes);
  });
}

// Rows: as many as have accumulators in registers.
template <size_t Bytes, int Rows, int Gates, typename Real>
INGOT_INLINE void multiply_gates(StateRows<Real> state, const Real* panel, Real* sums) {
  for (; state.rows >= Rows; state.rows -= Rows) {
    multiply_rows<Bytes, Rows, Gates>(state, panel, sums);
    state.data += Rows * state.stride;
    sums += Rows * Gates * kPanelColumns;
  }
  if constexpr (Rows > 1) multiply_gates<Bytes, 1, Gates>(state, panel, sums);
}
template <size_t Bytes, int Rows, typename Real>
INGOT_INLINE void multiply(const StateRows<Real>& state, const Real* panel, int64_t gates, Real* sums) {
  if (gates == 4)
    multiply_gates<Bytes, Rows, 4>(state, panel, sums);
  else if (gates == 3)
    multiply_gates<Bytes, Rows, 3>(state, panel, sums);
  else
    multiply_gates<Bytes, Rows, 1>(state, panel, sums);
}

// One version per level of x86-64: GCC generates poor code for vectors that are wider than the processor's.
template <typename Real>
void multiply_any(const StateRows<Real>& state, const Real* panel, int64_t gates, Real* sums) {
  multiply<16, 1>(state, panel, gates, sums);
}
#ifdef INGOT_TARGET
template <typename Real>
INGOT_TARGET("arch=x86-64-v3")
void multiply_v3(const StateRows<Real>& state, const Real* panel, int64_t gates, Real* sums) {
  multiply<32, 1>(state, panel, gates, sums);
}
template <typename Real>
INGOT_TARGET("arch=x86-64-v4")
void multiply_v4(const StateRows<Real>& state, const Real* panel, int64_t gates, Real* sums) {
  multiply<64, 16 / sizeof(Real)>(state, panel, gates, sums);
}
#endif

template <typename Real>
void multiply_best(const StateRows<Real>& state, const Real* panel, int64_t gates, Real* sums) {
#ifdef INGOT_TARGET
  if (__builtin_cpu_supports("x86-64-v4")) return multiply_v4(state, panel, gates, sums);
  if (__builtin_cpu_supports("x86-64-v3")) return multiply_v3(state, panel, gates, sums);
#endif
  multiply_any(state, panel, gates, sums);
}

// exp as 2^n * p(r), |r| <= ln(2) / 2; about 2 ulp, written so that loops vectorize.
inline float exponential(float x) {
  x = std::min(std::max(x, -87.0f), 88.0f);
  const float n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}
inline double exponential(double x) { return std::exp(x); }

template <typename Real>
inline Real sigmoid(Real x) {
  return Real{1} / (Real{1} + exponential(-x));
}
template <typename Real>
inline Real tangent(Real x) {
  return Real{2} / (Real{1} + exponential(Real{-2} * x)) - Real{1};
}

template <typename Real>
inline void lstm_columns(const Real* sums, Real* cell, Real* after, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const Real input = sigmoid(sums[j]), forget = sigmoid(sums[kPanelColumns + j]);
    const Real next = forget * cell[j] + input * tangent(sums[2 * kPanelColumns + j]);
    cell[j] = next;
    after[j] = sigmoid(sums[3 * kPanelColumns + j]) * tangent(next);
  }
}

template <typename Real>
inline void gru_columns(const Real* inputs, int64_t distance, const Real* sums, const Real* before,
                        Real* after, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const Real reset = sigmoid(inputs[j] + sums[j]);
    const Real update = sigmoid(inputs[distance + j] + sums[kPanelColumns + j]);
    const Real candidate = tangent(inputs[2 * distance + j] + reset * sums[2 * kPanelColumns + j]);
    after[j] = candidate + update * (before[j] - candidate);
  }
}

template <typename Real>
inline void plain_columns(const Real* sums, bool is_relu, Real* after, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const Real positive = sums[j] < 0 ? Real{0} : sums[j];  // propagates NaN
    after[j] = is_relu ? positive : tangent(sums[j]);
  }
}

}  // namespace

void add_product(const StateRows<float>& state, const float* panel, int64_t gates, float* sums) {
  multiply_best(state, panel, gates, sums);
}
void add_product(const StateRows<double>& state, const double* panel, int64_t gates, double* sums) {
  multiply_best(state, panel, gates, sums);
}

INGOT_TARGET_CLONES __attribute__((optimize("O3"))) void lstm_gates(const float* sums, float* cell,
                                                                    float* after, int64_t count) {
  if (count == kPanelColumns)  // a constant trip count unrolls completely
    lstm_columns(sums, cell, after, kPanelColumns);
  else
    lstm_columns(sums, cell, after, count);
}
void lstm_gates(const double* sums, double* cell, double* after, int64_t count) {
  lstm_columns(sums, cell, after, count);
}
INGOT_TARGET_CLONES __attribute__((optimize("O3"))) void gru_gates(const float* inputs, int64_t distance,
                                                                   const float* sums, const float* before,
                                                                   float* after, int64_t count) {
  if (count == kPanelColumns)
    gru_columns(inputs, distance, sums, before, after, kPanelColumns);
  else
    gru_columns(inputs, distance, sums, before, after, count);
}
void gru_gates(const double* inputs, int64_t distance, const double* sums, const double* before,
               double* after, int64_t count) {
  gru_columns(inputs, distance, sums, before, after, count);
}
INGOT_TARGET_CLONES __attribute__((optimize("O3"))) void plain_gate(const float* sums, bool is_relu,
                                                                    float* after, int64_t count) {
  if (count == kPanelColumns)
    plain_columns(sums, is_relu, after, kPanelColumns);
  else
    plain_columns(sums, is_relu, after, count);
}
void plain_gate(const double* sums, bool is_relu, double* after, int64_t count) {
  plain_columns(sums, is_relu, after, count);
}

}  // namespace ingot::core::routines
