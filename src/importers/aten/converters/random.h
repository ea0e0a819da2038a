// SPDX-License-Identifier: Apache-2.0
// Draws of random numbers in an engine. All of them reject calls that torch's generator has to serve.
#pragma once

#include <limits>

#include "importers/aten/converters/terms.h"

namespace ingot::core::aten {

inline constexpr int64_t kLargestInteger = std::numeric_limits<int64_t>::max();
Term whole(Call& call, int64_t value);  // an i64 constant of 64 bits
int digits_of(DType dtype);             // of its significands

// i64, uniform over all 64 bits.
Term random_bits(Call& call, const Shape& shape);
// Multiples of 2^-digits in [0, 1) that `dtype` represents exactly, as torch draws them.
Term random_fractions(Call& call, const Shape& shape, DType dtype);
// In (0, 1): no logarithm of them is infinite or 0. `dtype`: f32 or f64.
Term random_inside(Call& call, const Shape& shape, DType dtype);
// Of mean 0 and standard deviation 1. `dtype`: f32 or f64.
Term random_normals(Call& call, const Shape& shape, DType dtype);
// A dtype to compute draws in: f64 for f64, f32 for all others.
DType drawing_dtype(DType dtype);
// 1 with probability 1 - p, else 0.
Term random_kept(Call& call, const Shape& shape, DType dtype, double p);
// By which dropout multiplies what it keeps: 1 / (1 - p); 0 for p = 1, which keeps nothing.
double kept_factor(double p);

}  // namespace ingot::core::aten
