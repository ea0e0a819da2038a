// SPDX-License-Identifier: Apache-2.0
#include "routines/one_reflection.h"

#include <algorithm>
#include <cmath>

namespace ingot::core::routines {

Reflected reflect(double* x, int64_t size) {
  constexpr double kNegligibleSquare = 1e-250;  // the square root of less would not be accurate
  double others = 0;
  for (int64_t i = 1; i < size; ++i) others += x[i] * x[i];
  const double first = x[0];
  x[0] = 1;
  if (others < kNegligibleSquare) {
    std::fill_n(x + 1, size - 1, 0.0);
    return {0, first};
  }
  const double length = -std::copysign(std::sqrt(first * first + others), first),
               factor = 1 / (first - length);
  for (int64_t i = 1; i < size; ++i) x[i] *= factor;
  return {(length - first) / length, length};
}

}  // namespace ingot::core::routines
