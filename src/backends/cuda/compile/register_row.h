// SPDX-License-Identifier: Apache-2.0
// Kernels of rows (norms, softmax) whose threads keep their part of a row in registers: each operand is read
// once, in vectors of up to 16 bytes, and stages pass values to each other without memory or barriers.
#pragma once

#include <optional>
#include <string>

#include "backends/cuda/compile/index_text.h"
#include "loops/kernel.h"

namespace ingot::core::cuda {

struct RegisterRow {
  int64_t extent = 0;  // of every loop over the row
  int group = 32;      // threads that share a row
  int wide = 1;        // contiguous elements of a thread, `chunks` times
  int64_t chunks() const { return (extent + group * wide - 1) / (group * wide); }
};

// Ways to divide the kernel's rows, the default first; none if a stage is not over the whole row, or if its
// parts would not fit in registers.
std::vector<RegisterRow> register_rows(const loops::Kernel& kernel);

struct RegisterRowText {
  std::string weights;  // loads of weights that all points share; nothing else has to be complete for them
  std::string point;    // what computes one point of the parallel loops, whose variables are in scope
};

// `lane` is the thread's number in its group. `are_weights`: of KernelOptions.
RegisterRowText register_row_text(const loops::Kernel& kernel, const RegisterRow& row,
                                  const IndexScope& scope, const std::vector<bool>& are_weights);

}  // namespace ingot::core::cuda
