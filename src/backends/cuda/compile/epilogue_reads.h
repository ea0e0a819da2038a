// SPDX-License-Identifier: Apache-2.0
// What an epilogue reads besides sums, and how a thread can load it for several neighbours at a time.
#pragma once

#include <functional>
#include <vector>

#include "loops/kernel.h"

namespace ingot::core::cuda {

constexpr int kEight = 8;

struct EpilogueRead {
  size_t buffer;
  std::vector<Dim> index;
};

struct EpilogueReads {
  std::vector<EpilogueRead> wide;    // contiguous elements, for as many columns
  std::vector<EpilogueRead> of_row;  // one number of a row, in f32

  bool has_any() const { return !wide.empty() || !of_row.empty(); }
};

// Buffers of the kernel behind the first. All loads of such a buffer have one index, which is in its bounds
// for every element. `wide`: columns that a thread finishes at a time. `is_given`: buffers that stand for
// something else.
EpilogueReads epilogue_reads(const loops::Kernel& epilogue, const Dim& column, int wide,
                             const std::function<bool(size_t buffer)>& is_given);

// Whether `wide` columns from a multiple of it on are contiguous floating-point elements at `index`.
bool are_neighbours(const loops::Buffer& buffer, const std::vector<Dim>& index, const Dim& column, int wide);

// Whether a place is a multiple of eight where the column is.
bool is_multiple_of_eight(const Dim& place, const Dim& column);

}  // namespace ingot::core::cuda
