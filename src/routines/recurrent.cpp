// SPDX-License-Identifier: Apache-2.0
#include "routines/recurrent.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "routines/unrolled.h"
#include "support/target_attribute.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // of functions that return vectors: all of them are inlined
#endif

namespace ingot::core::routines {
namespace {

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

// exp as 2^n * p(r), |r| <= ln(2) / 2; about 2 ulp. Keeps NaN.
template <typename Lanes>
INGOT_INLINE Lanes exponential(const Lanes& any) {
  typedef int32_t Integers __attribute__((vector_size(sizeof(Lanes))));
  Lanes x = any < -87.0f ? Lanes{} - 87.0f : any;
  x = x > 88.0f ? Lanes{} + 88.0f : x;
  const Lanes n = (x * 1.44269504f + 12582912.0f) - 12582912.0f;
  const Lanes r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  Lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  return p * std::bit_cast<Lanes>((__builtin_convertvector(n, Integers) + 127) << 23);
}
INGOT_INLINE double exponential(double x) { return std::exp(x); }

template <typename Lanes>
INGOT_INLINE Lanes sigmoid(const Lanes& x) {
  return 1.0f / (1.0f + exponential(-x));
}
template <typename Lanes>
INGOT_INLINE Lanes tangent(const Lanes& x) {
  return 2.0f / (1.0f + exponential(-2.0f * x)) - 1.0f;
}

template <typename Lanes, typename Real>
INGOT_INLINE Lanes load(const Real* from) {
  Lanes value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
template <typename Lanes, typename Real>
INGOT_INLINE void store(const Lanes& value, Real* to) {
  std::memcpy(to, &value, sizeof(value));
}

// The gates of a panel's columns. `sums`: [gates][kPanelColumns]; the others have kPanelColumns numbers.
template <typename Real>
struct LstmColumns {
  const Real* sums;
  Real *cell, *after;

  template <typename Lanes>
  INGOT_INLINE void run(int64_t j) const {
    const auto gate = [&](int64_t i) __attribute__((always_inline)) {
      return load<Lanes>(sums + i * kPanelColumns + j);
    };
    const Lanes next = sigmoid(gate(1)) * load<Lanes>(cell + j) + sigmoid(gate(0)) * tangent(gate(2));
    store(next, cell + j);
    store(sigmoid(gate(3)) * tangent(next), after + j);
  }
};

template <typename Real>
struct GruColumns {
  const Real* inputs;  // [3] of `distance`
  int64_t distance;
  const Real *sums, *before;
  Real* after;

  template <typename Lanes>
  INGOT_INLINE void run(int64_t j) const {
    const auto gate = [&](int64_t i) __attribute__((always_inline)) {
      return load<Lanes>(sums + i * kPanelColumns + j);
    };
    const auto input = [&](int64_t i)
                           __attribute__((always_inline)) { return load<Lanes>(inputs + i * distance + j); };
    const Lanes reset = sigmoid(input(0) + gate(0)), update = sigmoid(input(1) + gate(1));
    const Lanes candidate = tangent(input(2) + reset * gate(2));
    store(candidate + update * (load<Lanes>(before + j) - candidate), after + j);
  }
};

template <typename Real>
struct PlainColumns {
  const Real* sums;
  bool is_relu;
  Real* after;

  template <typename Lanes>
  INGOT_INLINE void run(int64_t j) const {
    const auto sum = load<Lanes>(sums + j);
    if (is_relu)
      store(sum < 0 ? Lanes{} : sum, after + j);  // keeps NaN
    else
      store(tangent(sum), after + j);
  }
};

template <typename Lanes, typename Columns>
INGOT_INLINE void run_columns(const Columns& columns, int64_t step) {
  for (int64_t j = 0; j < kPanelColumns; j += step) columns.template run<Lanes>(j);
}
template <size_t Bytes, template <typename> typename Columns>
INGOT_INLINE void run_floats(const Columns<float>& columns) {
  typedef float Lanes __attribute__((vector_size(Bytes)));
  run_columns<Lanes>(columns, Bytes / sizeof(float));
}

#ifdef INGOT_TARGET
template <typename Columns>
INGOT_TARGET("arch=x86-64-v3")
void run_v3(const Columns& columns) {
  run_floats<32>(columns);
}
template <typename Columns>
INGOT_TARGET("arch=x86-64-v4")
void run_v4(const Columns& columns) {
  run_floats<64>(columns);
}
#endif

template <template <typename> typename Columns>
void run_best(const Columns<float>& columns) {
#ifdef INGOT_TARGET
  if (__builtin_cpu_supports("x86-64-v4")) return run_v4(columns);
  if (__builtin_cpu_supports("x86-64-v3")) return run_v3(columns);
#endif
  run_floats<16>(columns);
}
template <template <typename> typename Columns>
void run_best(const Columns<double>& columns) {
  run_columns<double>(columns, 1);
}

// The numbers of a panel that the layer's width cuts, and zeros.
template <typename Real>
struct CutPanel {
  CutPanel(const Real* from, int64_t count) { std::copy_n(from, count, values); }
  alignas(64) Real values[kPanelColumns] = {};
};

template <typename Real>
void lstm_panel(const Real* sums, Real* cell, Real* after, int64_t count) {
  if (count == kPanelColumns) return run_best(LstmColumns<Real>{sums, cell, after});
  CutPanel<Real> own_cell(cell, count), own_after(after, 0);
  run_best(LstmColumns<Real>{sums, own_cell.values, own_after.values});
  std::copy_n(own_cell.values, count, cell);
  std::copy_n(own_after.values, count, after);
}

template <typename Real>
void gru_panel(const Real* inputs, int64_t distance, const Real* sums, const Real* before, Real* after,
               int64_t count) {
  if (count == kPanelColumns) return run_best(GruColumns<Real>{inputs, distance, sums, before, after});
  Real own_inputs[3 * kPanelColumns] = {};
  for (int64_t i = 0; i < 3; ++i) std::copy_n(inputs + i * distance, count, own_inputs + i * kPanelColumns);
  const CutPanel<Real> own_before(before, count);
  CutPanel<Real> own_after(after, 0);
  run_best(GruColumns<Real>{own_inputs, kPanelColumns, sums, own_before.values, own_after.values});
  std::copy_n(own_after.values, count, after);
}

template <typename Real>
void plain_panel(const Real* sums, bool is_relu, Real* after, int64_t count) {
  if (count == kPanelColumns) return run_best(PlainColumns<Real>{sums, is_relu, after});
  CutPanel<Real> own_after(after, 0);
  run_best(PlainColumns<Real>{sums, is_relu, own_after.values});
  std::copy_n(own_after.values, count, after);
}

}  // namespace

void add_product(const StateRows<float>& state, const float* panel, int64_t gates, float* sums) {
  multiply_best(state, panel, gates, sums);
}
void add_product(const StateRows<double>& state, const double* panel, int64_t gates, double* sums) {
  multiply_best(state, panel, gates, sums);
}

void lstm_gates(const float* sums, float* cell, float* after, int64_t count) {
  lstm_panel(sums, cell, after, count);
}
void lstm_gates(const double* sums, double* cell, double* after, int64_t count) {
  lstm_panel(sums, cell, after, count);
}
void gru_gates(const float* inputs, int64_t distance, const float* sums, const float* before, float* after,
               int64_t count) {
  gru_panel(inputs, distance, sums, before, after, count);
}
void gru_gates(const double* inputs, int64_t distance, const double* sums, const double* before,
               double* after, int64_t count) {
  gru_panel(inputs, distance, sums, before, after, count);
}
void plain_gate(const float* sums, bool is_relu, float* after, int64_t count) {
  plain_panel(sums, is_relu, after, count);
}
void plain_gate(const double* sums, bool is_relu, double* after, int64_t count) {
  plain_panel(sums, is_relu, after, count);
}

}  // namespace ingot::core::routines
