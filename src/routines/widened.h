// SPDX-License-Identifier: Apache-2.0
// Elements that are computed in f32, and f64, in which they are computed as they are.
#pragma once

#include <type_traits>

#include "routines/sort_keys.h"
#include "support/target_attribute.h"
#include "types/float_formats.h"

namespace ingot::core::routines {

INGOT_INLINE float widened(float x) { return x; }
INGOT_INLINE double widened(double x) { return x; }
INGOT_INLINE float widened(Half x) { return half_to_float(x.bits); }
INGOT_INLINE float widened(BFloat16 x) { return bfloat16_to_float(x.bits); }

// Rounded to nearest, ties to even.
template <typename Narrow>
INGOT_INLINE Narrow narrowed(float x) {
  if constexpr (std::is_same_v<Narrow, Half>) return {float_to_half(x)};
  return {float_to_bfloat16(x)};
}

}  // namespace ingot::core::routines
