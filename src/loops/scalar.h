// SPDX-License-Identifier: Apache-2.0
// The scalar semantics of Loop IR as plain functions, for the interpreter and for constant folding.
#pragma once

#include <cstdint>

#include "loops/operators.h"
#include "types/dtype.h"

namespace ingot::core::loops {

// `number` if the dtype is floating (an f32 is kept rounded), else `integer` (wrapped to the dtype; u64 as
// its bits).
struct Scalar {
  double number = 0;
  int64_t integer = 0;
};

double round_to(DType dtype, double value);   // f32: rounded once; f64: unchanged
int64_t wrap_to(DType dtype, int64_t value);  // modulo 2^width; bool: value != 0

Scalar apply(Unary op, DType dtype, Scalar a);
Scalar apply(Binary op, DType dtype, Scalar a, Scalar b);  // dtype of the operands
Scalar convert_scalar(Scalar value, DType from, DType to);
Scalar bitcast_scalar(Scalar value, DType from, DType to);
Scalar fma_scalar(DType dtype, Scalar a, Scalar b, Scalar c);

Binary binary_of(Combine combine);                 // undefined for kNone
Scalar identity_of(Combine combine, DType dtype);  // the initial value of a reduction

}  // namespace ingot::core::loops
