// SPDX-License-Identifier: Apache-2.0
#include "routines/recurrent.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "support/target_clones.h"
#include "support/thread_pool.h"

namespace ingot::core::routines {
namespace {

constexpr int64_t kBlock = 64;  // columns whose sums stay in registers

// sums[0, kBlock) += hidden * weight[:, 0, kBlock)
INGOT_TARGET_CLONES void add_block(const float* hidden, const float* weight, int64_t rows, int64_t stride,
                                   float* sums) {
  float total[kBlock];
  for (int64_t j = 0; j < kBlock; ++j) total[j] = sums[j];
  for (int64_t k = 0; k < rows; ++k) {
    const float state = hidden[k];
    const float* row = weight + k * stride;
    for (int64_t j = 0; j < kBlock; ++j) total[j] += state * row[j];
  }
  for (int64_t j = 0; j < kBlock; ++j) sums[j] = total[j];
}
INGOT_TARGET_CLONES void add_block(const double* hidden, const double* weight, int64_t rows, int64_t stride,
                                   double* sums) {
  double total[kBlock];
  for (int64_t j = 0; j < kBlock; ++j) total[j] = sums[j];
  for (int64_t k = 0; k < rows; ++k) {
    const double state = hidden[k];
    const double* row = weight + k * stride;
    for (int64_t j = 0; j < kBlock; ++j) total[j] += state * row[j];
  }
  for (int64_t j = 0; j < kBlock; ++j) sums[j] = total[j];
}

template <typename Real>
void add_columns(const Real* hidden, const Real* weight, int64_t rows, int64_t stride, Real* sums,
                 int64_t count) {
  if (count == kBlock) return add_block(hidden, weight, rows, stride, sums);
  for (int64_t k = 0; k < rows; ++k) {
    for (int64_t j = 0; j < count; ++j) sums[j] += hidden[k] * weight[k * stride + j];
  }
}

template <typename Real>
void multiply(const Real* start, int64_t start_stride, const Real* hidden, const Real* weight, Real* sums,
              const RecurrentShape& shape, ThreadPool* pool) {
  const int64_t width = shape.gates * shape.hidden, blocks = (width + kBlock - 1) / kBlock;
  auto run = [&](int64_t begin, int64_t end, int) {
    for (int64_t block = begin; block < end; ++block) {
      const int64_t column = block * kBlock, count = std::min(kBlock, width - column);
      for (int64_t row = 0; row < shape.batch; ++row) {
        Real* to = sums + row * width + column;
        if (start == nullptr)
          std::fill_n(to, count, Real{0});
        else
          std::copy_n(start + row * start_stride + column, count, to);
        add_columns(hidden + row * shape.hidden, weight + column, shape.hidden, width, to, count);
      }
    }
  };
  constexpr int64_t kWorthThreads = 1 << 17;  // multiplications; less is done before other threads wake
  if (pool != nullptr && shape.batch * width * shape.hidden >= kWorthThreads)
    pool->parallel_for(blocks, 1, run);
  else
    run(0, blocks, 0);
}

// exp by 2^n * p(r), |r| <= ln(2) / 2; about 2 units in the last place, and written so that loops vectorize.
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
inline void lstm_step(const Real* sums, Real* cell, Real* hidden, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const Real input = sigmoid(sums[j]), forget = sigmoid(sums[count + j]);
    const Real next = forget * cell[j] + input * tangent(sums[2 * count + j]);
    cell[j] = next;
    hidden[j] = sigmoid(sums[3 * count + j]) * tangent(next);
  }
}

template <typename Real>
inline void gru_step(const Real* input, const Real* recurrent, Real* hidden, int64_t count) {
  for (int64_t j = 0; j < count; ++j) {
    const Real reset = sigmoid(input[j] + recurrent[j]);
    const Real update = sigmoid(input[count + j] + recurrent[count + j]);
    const Real candidate = tangent(input[2 * count + j] + reset * recurrent[2 * count + j]);
    hidden[j] = candidate + update * (hidden[j] - candidate);
  }
}

}  // namespace

void multiply_state(const float* start, int64_t start_stride, const float* hidden, const float* weight,
                    float* sums, const RecurrentShape& shape, ThreadPool* pool) {
  multiply(start, start_stride, hidden, weight, sums, shape, pool);
}
void multiply_state(const double* start, int64_t start_stride, const double* hidden, const double* weight,
                    double* sums, const RecurrentShape& shape, ThreadPool* pool) {
  multiply(start, start_stride, hidden, weight, sums, shape, pool);
}

INGOT_TARGET_CLONES __attribute__((optimize("O3"))) void lstm_gates(const float* sums, float* cell,
                                                                    float* hidden, int64_t count) {
  lstm_step(sums, cell, hidden, count);
}
void lstm_gates(const double* sums, double* cell, double* hidden, int64_t count) {
  lstm_step(sums, cell, hidden, count);
}
INGOT_TARGET_CLONES __attribute__((optimize("O3"))) void gru_gates(const float* input, const float* recurrent,
                                                                   float* hidden, int64_t count) {
  gru_step(input, recurrent, hidden, count);
}
void gru_gates(const double* input, const double* recurrent, double* hidden, int64_t count) {
  gru_step(input, recurrent, hidden, count);
}

}  // namespace ingot::core::routines
