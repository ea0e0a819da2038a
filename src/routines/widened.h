// SPDX-License-Identifier: Apache-2.0
// Conversions of elements of 16 bits, inline: for loops over many of them.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "routines/sort_keys.h"
#include "support/target_attribute.h"
#include "types/tensor.h"

namespace ingot::core::routines {

INGOT_INLINE float widened(float x) { return x; }
INGOT_INLINE double widened(double x) { return x; }
INGOT_INLINE float widened(BFloat16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }
INGOT_INLINE float widened(Half x) {
  constexpr uint32_t kSmallestNormal = 0x400, kInfinity = 0x7c00, kBiases = 127 - 15, kQuiet = 1U << 22;
  const uint32_t magnitude = x.bits & 0x7fffU, sign = (x.bits & 0x8000U) << 16;
  const auto small = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  const uint32_t special = 0x7f800000U | (magnitude > kInfinity ? kQuiet : 0);
  const uint32_t normal = (magnitude << 13) + (kBiases << 23);
  return std::bit_cast<float>(sign | (magnitude < kSmallestNormal ? small
                                      : magnitude >= kInfinity    ? special
                                                                  : normal));
}

// Rounded to nearest, ties to even.
template <typename Narrow>
INGOT_INLINE Narrow narrowed(float x) {
  if constexpr (std::is_same_v<Narrow, Half>) return {float_to_half(x)};
  const auto bits = std::bit_cast<uint32_t>(x);
  const uint32_t nan = (bits >> 16 & 0x8000U) | 0x7fc0U, rounded = (bits + 0x7fffU + (bits >> 16 & 1)) >> 16;
  return {static_cast<uint16_t>(x != x ? nan : rounded)};
}

}  // namespace ingot::core::routines
