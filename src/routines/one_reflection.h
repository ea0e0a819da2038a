// SPDX-License-Identifier: Apache-2.0
// One reflection of a vector of f64, and the memory for what update_columns reads.
#pragma once

#include "routines/column_kernels.h"

namespace ingot::core::routines {

struct Reflected {
  double scale, length;
};
// x becomes v of the reflection I - scale v v^T, whose first element is 1, and which makes `length` of the
// first element of x and zeros of the others. The largest element of the matrix should be about 1: what is
// far smaller counts as zero.
Reflected reflect(double* x, int64_t size);

// `size` elements each, zeros at first, and readable where kernels read more.
struct WorkVectors {
  PaddedColumns memory;
  explicit WorkVectors(int64_t size) : memory(size + kColumnsOfKernels, 6) {}
  double* operator[](int64_t index) const { return memory.column(index); }
};

// The first row that kernels can begin with.
inline int64_t aligned(int64_t row) { return row / kRowsOfKernels * kRowsOfKernels; }

}  // namespace ingot::core::routines
