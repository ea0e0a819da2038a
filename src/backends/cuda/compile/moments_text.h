// SPDX-License-Identifier: Apache-2.0
// The mean and deviation of rows, where a product of few rows follows a norm (normalized_linear): a sum of
// products becomes (sum - mean * sum of b's column) * scale.
#pragma once

#include <string>

#include "ir/graph.h"

namespace ingot::core::cuda {

// Whether the contraction's kernel computes them of the rows that it has in shared memory.
bool computes_moments(const Node& contraction);

// keep_moments_of_row, which the body for few rows calls, and finish_moments, for operands that are not
// aligned; for ordinary contractions the first does nothing. `offset`: of f32[rows][2] in shared memory.
std::string moments_functions(const Node& contraction, int64_t offset);
// After the body: center_far_rows(shared, first_row, first_column, x), before the epilogue, which calls
// normalized(sum, moments, column_sum).
std::string centering_functions(const Node& contraction);
int64_t moments_bytes(const Node& contraction, int rows);

}  // namespace ingot::core::cuda
