// SPDX-License-Identifier: Apache-2.0
// Numbers of as many lines as a block of Fourier transforms has lanes, to its rows and back.
#pragma once

#include <cstdint>

#include "routines/fourier_block.h"

namespace ingot::core::routines {

// Lines of `count` adjacent numbers, `span` apart: one per lane.
template <typename Real>
struct AdjacentLines {
  Real* first;
  int64_t span, count;
};

// Rows of one number per lane, aligned to 32 bytes: those of a block in turn, or of its two parts.
template <typename Real>
struct LaneRows {
  Real *even, *odd;
  int64_t step;  // between two even rows

  static LaneRows of(Real* part) { return {part, part + kFourierLanes<Real>, 2 * kFourierLanes<Real>}; }
  static LaneRows of(const FourierBlock<Real>& block) { return {block.re, block.im, kFourierLanes<Real>}; }
  Real* row(int64_t index) const { return (index % 2 == 0 ? even : odd) + index / 2 * step; }
};

template <typename Real>
void lines_to_rows(const AdjacentLines<Real>& lines, const LaneRows<Real>& rows);
template <typename Real>
void rows_to_lines(const LaneRows<Real>& rows, const AdjacentLines<Real>& lines, Real scale);

// The same where the numbers of all lanes are adjacent, and those of a line `distance` apart.
template <typename Real>
struct AdjacentLanes {
  Real* first;
  int64_t distance, count;
};

template <typename Real>
void lanes_to_rows(const AdjacentLanes<Real>& lanes, Real* part);
template <typename Real>
void rows_to_lanes(const Real* part, const AdjacentLanes<Real>& lanes, Real scale);

}  // namespace ingot::core::routines
