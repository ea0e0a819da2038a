// SPDX-License-Identifier: Apache-2.0
// Whether numbers of an operand are finite and small enough for a shorter way to compute with them.
#pragma once

#include "backends/cpu/compile/templates/matrix_operand.h"

namespace ingot::core::cpu {

struct RowRange {
  const PlacedMatrix& rows;
  DType dtype;  // f32, bf16 or f16
  llvm::Value *first, *end;
  int64_t width;  // columns, adjacent in memory
  int lanes;
};

// An i1: whether all numbers of the range are below `limit` in magnitude. None is NaN then.
llvm::Value* are_below(Scaffold& scaffold, const RowRange& range, double limit);

}  // namespace ingot::core::cpu
