// SPDX-License-Identifier: Apache-2.0
#include "routines/column_kernels.h"

#include <algorithm>
#include <cstring>

#include "routines/unrolled.h"
#include "support/target_attribute.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // of functions that take vectors: all of them are inlined
#endif

namespace ingot::core::routines {
namespace {

template <size_t Bytes>
struct KernelsOf {
  typedef double Lanes __attribute__((vector_size(Bytes)));
  static constexpr int64_t kLanes = Bytes / sizeof(double);

  static INGOT_INLINE Lanes load(const double* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, Bytes);
    return lanes;
  }
  static INGOT_INLINE void store(double* to, const Lanes& lanes) { std::memcpy(to, &lanes, Bytes); }

  static INGOT_INLINE void update(const ColumnUpdate& x) {
    for (int64_t j = 0; j < x.columns; j += kColumnsOfKernels) {
      double* const first = x.data + j * x.stride;
      Lanes total[kColumnsOfKernels] = {};
      for (int64_t i = 0; i < x.rows; i += kLanes) {
        const Lanes left = load(x.column[0] + i), right = load(x.column[1] + i), with = load(x.with + i);
        unrolled<kColumnsOfKernels>([&](auto k) __attribute__((always_inline)) {
          double* const at = first + k * x.stride + i;
          Lanes lanes = load(at);
          lanes -= left * x.row[0][j + k];
          lanes -= right * x.row[1][j + k];
          store(at, lanes);
          total[k] += lanes * with;
        });
      }
      unrolled<kColumnsOfKernels>([&](auto k) __attribute__((always_inline)) {
        double dot = 0;
        for (int lane = 0; lane < kLanes; ++lane) dot += total[k][lane];
        x.dots[j + k] = dot;
      });
    }
  }

  static INGOT_INLINE void sum(const ColumnSum& x) {
    std::fill_n(x.sum, x.rows, 0.0);
    for (int64_t j = 0; j < x.columns; j += kColumnsOfKernels) {
      const double* const first = x.data + j * x.stride;
      for (int64_t i = 0; i < x.rows; i += kLanes) {
        Lanes total[2] = {load(x.sum + i)};
        unrolled<kColumnsOfKernels>([&](auto k) __attribute__((always_inline)) {
          total[k % 2] += load(first + k * x.stride + i) * x.with[j + k];
        });
        store(x.sum + i, total[0] + total[1]);
      }
    }
  }

  // Of as many rows as `Count` vectors have.
  template <int Count>
  static INGOT_INLINE void rotate_rows(double* data, int64_t stride, std::span<const Rotation> rotations) {
    Lanes x[Count], y[Count];
    std::memcpy(x, data, sizeof(x));
    for (const auto& [c, s] : rotations) {
      std::memcpy(y, data + stride, sizeof(y));
      unrolled<Count>([&](auto k) __attribute__((always_inline)) {
        store(data + k * kLanes, c * x[k] + s * y[k]);
        x[k] = c * y[k] - s * x[k];
      });
      data += stride;
    }
    std::memcpy(data, x, sizeof(x));
  }
};

struct Rotated {
  double* data;
  int64_t stride, rows;
  std::span<const Rotation> rotations;
  std::span<const ColumnRotations::Sweep> sweeps;
};

template <size_t Bytes>
INGOT_INLINE void rotate(const Rotated& x) {
  constexpr int64_t kMany = 4, kLanes = KernelsOf<Bytes>::kLanes;
  int64_t taken = 0;
  for (int64_t row = 0; row < x.rows; row += taken) {
    const bool are_many = x.rows - row >= kMany * kLanes;
    taken = are_many ? kMany * kLanes : kLanes;
    for (size_t i = 0; i < x.sweeps.size(); ++i) {
      const auto [first, begin] = x.sweeps[i];
      const size_t end =
          i + 1 < x.sweeps.size() ? static_cast<size_t>(x.sweeps[i + 1].begin) : x.rotations.size();
      const auto rotations =
          x.rotations.subspan(static_cast<size_t>(begin), end - static_cast<size_t>(begin));
      double* const data = x.data + first * x.stride + row;
      if (are_many)
        KernelsOf<Bytes>::template rotate_rows<kMany>(data, x.stride, rotations);
      else
        KernelsOf<Bytes>::template rotate_rows<1>(data, x.stride, rotations);
    }
  }
}

// One function of each level of processors; `best` chooses.
struct Kernels {
  void (*update)(const ColumnUpdate&);
  void (*sum)(const ColumnSum&);
  void (*rotate)(const Rotated&);
};
void update_any(const ColumnUpdate& x) { KernelsOf<16>::update(x); }
void sum_any(const ColumnSum& x) { KernelsOf<16>::sum(x); }
void rotate_any(const Rotated& x) { rotate<16>(x); }
#ifdef INGOT_TARGET
INGOT_TARGET("arch=x86-64-v3") void update_v3(const ColumnUpdate& x) { KernelsOf<32>::update(x); }
INGOT_TARGET("arch=x86-64-v3") void sum_v3(const ColumnSum& x) { KernelsOf<32>::sum(x); }
INGOT_TARGET("arch=x86-64-v3") void rotate_v3(const Rotated& x) { rotate<32>(x); }
INGOT_TARGET("arch=x86-64-v4") void update_v4(const ColumnUpdate& x) { KernelsOf<64>::update(x); }
INGOT_TARGET("arch=x86-64-v4") void sum_v4(const ColumnSum& x) { KernelsOf<64>::sum(x); }
INGOT_TARGET("arch=x86-64-v4") void rotate_v4(const Rotated& x) { rotate<64>(x); }
#endif

Kernels best() {
#ifdef INGOT_TARGET
  if (__builtin_cpu_supports("x86-64-v4")) return {update_v4, sum_v4, rotate_v4};
  if (__builtin_cpu_supports("x86-64-v3")) return {update_v3, sum_v3, rotate_v3};
#endif
  return {update_any, sum_any, rotate_any};
}

}  // namespace

PaddedColumns::PaddedColumns(int64_t rows, int64_t columns)
    : rows_((rows + kRowsOfKernels - 1) / kRowsOfKernels * kRowsOfKernels),
      stride_(rows_ | kRowsOfKernels),  // odd multiples: columns differ in their sets of caches
      memory_(new(std::align_val_t{
          kRowsOfKernels *
          sizeof(double)}) double[static_cast<size_t>(stride_ * (columns + kColumnsOfKernels))]()) {}

void update_columns(const ColumnUpdate& update) { best().update(update); }
void sum_columns(const ColumnSum& columns) { best().sum(columns); }

void ColumnRotations::begin(int64_t first) {
  if (rotations_.size() >= kMostRotations) apply();
  sweeps_.push_back({first, static_cast<int64_t>(rotations_.size())});
}
void ColumnRotations::apply() {
  best().rotate({columns_.column(0), columns_.stride(), columns_.rows(), rotations_, sweeps_});
  rotations_.clear();
  sweeps_.clear();
}

}  // namespace ingot::core::routines
