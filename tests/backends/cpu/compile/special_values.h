// SPDX-License-Identifier: Apache-2.0
// Values at which floating-point code goes wrong, and exact comparison of results.
#pragma once

#include <string>
#include <vector>

#include "types/tensor.h"

namespace ingot::core::cpu::test {

// Signed zeros, infinities, NaN, denormals, extremes, and values around those where functions change course.
std::vector<double> special_values(DType dtype);

// How many elements two operands need for all combinations of special values: a multiple of 16.
int64_t special_pairs(DType dtype);
// Rows for special_tensor: each special value among whole numbers, and in all of a row; a multiple of 16.
int64_t special_rows(DType dtype);

// Operand `number` of a function. A vector holds special values, operands 0 and 1 all combinations of them
// within special_pairs. A matrix holds rows of small whole numbers, whose sums are exact, with special values
// among them.
Tensor special_tensor(DType dtype, const std::vector<int64_t>& shape, size_t number);

// Where `got` differs from `expected` in a bit, or "". All NaN are equal. With a tolerance, so are zeros and
// floats that are so near, relative to themselves and to 1.
std::string first_difference(const Tensor& expected, const Tensor& got, double relative = 0);

}  // namespace ingot::core::cpu::test
