// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "types/dtype.h"

namespace ingot::core::ops {

// Dtypes of weights that products of f32 convert themselves, without rounding.
inline bool is_narrow_weight(DType dtype) {
  return is_half(dtype) || dtype == DType::kI8 || dtype == DType::kE4M3 || dtype == DType::kE5M2;
}

}  // namespace ingot::core::ops
