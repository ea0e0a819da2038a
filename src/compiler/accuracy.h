// SPDX-License-Identifier: Apache-2.0
// The accuracy rule: when a result is as good as the one it is compared with.
#pragma once

#include <cmath>

#include "types/dtype.h"

namespace ingot::core {

// Tolerance for results whose root mean square is `rms`.
inline double allowed_difference(DType dtype, double expected, double rms) {
  switch (dtype) {
    case DType::kF64:
      return 1e-9 * std::fabs(expected) + 1e-11 * rms;
    case DType::kF32:
      return 1e-4 * std::fabs(expected) + 1e-5 * rms;
    case DType::kF16:
    case DType::kBF16:
      return 2e-2 * std::fabs(expected) + 2e-2 * rms;
    case DType::kE4M3:
      return 0.13 * std::fabs(expected) + 0.02 * rms;
    case DType::kE5M2:
      return 0.26 * std::fabs(expected) + 0.04 * rms;
    default:
      return 0;
  }
}

// NaN and infinities must be in the expected positions.
inline bool agree(double expected, double got, double allowed) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (std::isinf(expected) || std::isinf(got)) return expected == got;
  return std::fabs(expected - got) <= allowed;
}

}  // namespace ingot::core
