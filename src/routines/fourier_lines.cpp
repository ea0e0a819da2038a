// SPDX-License-Identifier: Apache-2.0
#include "routines/fourier_lines.h"

#include <algorithm>
#include <utility>

#include "routines/fourier_vectors.h"
#include "routines/unrolled.h"

namespace ingot::core::routines {
namespace {

template <typename Real>
constexpr int kLanes = static_cast<int>(kFourierLanes<Real>);

// The elements of `a` and `b` in turn: the first halves, or the second ones.
template <int kFirst, typename Vector, size_t... kLane>
INGOT_INLINE Vector interleave(const Vector& a, const Vector& b, std::index_sequence<kLane...>) {
  constexpr int kCount = sizeof...(kLane);
  return __builtin_shufflevector(a, b, (kFirst + static_cast<int>(kLane) / 2 + kCount * (kLane % 2))...);
}

// A square of as many vectors as one has lanes. Each round interleaves a vector with the one half the number
// of vectors behind it; after log2(lanes) rounds rows are columns.
template <typename Real>
INGOT_INLINE void transpose(FourierVector<Real> (&rows)[kLanes<Real>]) {
  constexpr int kCount = kLanes<Real>, kHalf = kCount / 2;
  constexpr auto kIndices = std::make_index_sequence<kCount>();
  for (int round = 1; round < kCount; round *= 2) {
    FourierVector<Real> next[kCount];
    unrolled<kHalf>([&](auto i) __attribute__((always_inline)) {
      next[2 * i] = interleave<0>(rows[i], rows[i + kHalf], kIndices);
      next[2 * i + 1] = interleave<kHalf>(rows[i], rows[i + kHalf], kIndices);
    });
    unrolled<kCount>([&](auto i) __attribute__((always_inline)) { rows[i] = next[i]; });
  }
}

template <typename Real>
struct LinesToRows {
  AdjacentLines<Real> lines;
  LaneRows<Real> rows;

  INGOT_INLINE void apply() const {
    using Unaligned = typename FourierVectorOf<Real>::Unaligned;
    constexpr int kCount = kLanes<Real>;
    const auto [lines, rows] = *this;
    int64_t k = 0;
    for (; k + kCount <= lines.count; k += kCount) {
      FourierVector<Real> square[kCount];
      unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
        square[i] = *reinterpret_cast<const Unaligned*>(lines.first + i * lines.span + k);
      });
      transpose<Real>(square);
      unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
        *reinterpret_cast<FourierVector<Real>*>(rows.row(k + i)) = square[i];
      });
    }
    for (; k < lines.count; ++k) {
      for (int64_t lane = 0; lane < kCount; ++lane) rows.row(k)[lane] = lines.first[lane * lines.span + k];
    }
  }
};

template <typename Real>
struct RowsToLines {
  LaneRows<Real> rows;
  AdjacentLines<Real> lines;
  Real scale;

  INGOT_INLINE void apply() const {
    using Unaligned = typename FourierVectorOf<Real>::Unaligned;
    constexpr int kCount = kLanes<Real>;
    const auto [rows, lines, scale] = *this;
    int64_t k = 0;
    for (; k + kCount <= lines.count; k += kCount) {
      FourierVector<Real> square[kCount];
      unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
        square[i] = *reinterpret_cast<const FourierVector<Real>*>(rows.row(k + i)) * scale;
      });
      transpose<Real>(square);
      unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
        *reinterpret_cast<Unaligned*>(lines.first + i * lines.span + k) = square[i];
      });
    }
    for (; k < lines.count; ++k) {
      for (int64_t lane = 0; lane < kCount; ++lane)
        lines.first[lane * lines.span + k] = rows.row(k)[lane] * scale;
    }
  }
};

template <typename Real>
struct LanesToRows {
  AdjacentLanes<Real> lanes;
  Real* part;

  INGOT_INLINE void apply() const {
    using Unaligned = typename FourierVectorOf<Real>::Unaligned;
    auto* const rows = reinterpret_cast<FourierVector<Real>*>(part);
    for (int64_t k = 0; k < lanes.count; ++k)
      rows[k] = *reinterpret_cast<const Unaligned*>(lanes.first + k * lanes.distance);
  }
};

template <typename Real>
struct RowsToLanes {
  const Real* part;
  AdjacentLanes<Real> lanes;
  Real scale;

  INGOT_INLINE void apply() const {
    using Unaligned = typename FourierVectorOf<Real>::Unaligned;
    const auto [part, lanes, scale] = *this;
    const auto* const rows = reinterpret_cast<const FourierVector<Real>*>(part);
    for (int64_t k = 0; k < lanes.count; ++k)
      *reinterpret_cast<Unaligned*>(lanes.first + k * lanes.distance) = rows[k] * scale;
  }
};

}  // namespace

template <typename Real>
void lines_to_rows(const AdjacentLines<Real>& lines, const LaneRows<Real>& rows) {
  run_vectors(LinesToRows<Real>{lines, rows});
}
template <typename Real>
void rows_to_lines(const LaneRows<Real>& rows, const AdjacentLines<Real>& lines, Real scale) {
  run_vectors(RowsToLines<Real>{rows, lines, scale});
}

template <typename Real>
void lanes_to_rows(const AdjacentLanes<Real>& lanes, Real* part) {
  run_vectors(LanesToRows<Real>{lanes, part});
}
template <typename Real>
void rows_to_lanes(const Real* part, const AdjacentLanes<Real>& lanes, Real scale) {
  run_vectors(RowsToLanes<Real>{part, lanes, scale});
}

template void lines_to_rows(const AdjacentLines<float>&, const LaneRows<float>&);
template void lines_to_rows(const AdjacentLines<double>&, const LaneRows<double>&);
template void rows_to_lines(const LaneRows<float>&, const AdjacentLines<float>&, float);
template void rows_to_lines(const LaneRows<double>&, const AdjacentLines<double>&, double);
template void lanes_to_rows(const AdjacentLanes<float>&, float*);
template void lanes_to_rows(const AdjacentLanes<double>&, double*);
template void rows_to_lanes(const float*, const AdjacentLanes<float>&, float);
template void rows_to_lanes(const double*, const AdjacentLanes<double>&, double);

}  // namespace ingot::core::routines
