// SPDX-License-Identifier: Apache-2.0
// Conversions of narrow floating-point formats as they are stored, rounded to nearest, ties to even. Values
// out of range become infinity; in e4m3, which has none, the largest value (as in torch 2.13; older versions
// produced NaN).
#pragma once

#include <bit>
#include <cstdint>

#include "support/target_attribute.h"

namespace ingot::core {

// Inline, for loops over many elements: by vectors where the processor has them.
INGOT_INLINE float half_to_float(uint16_t bits) {
  constexpr uint32_t kSmallestNormal = 0x400, kInfinity = 0x7c00, kBiases = 127 - 15, kQuiet = 1U << 22;
  const uint32_t magnitude = bits & 0x7fffU, sign = (bits & 0x8000U) << 16;
  const auto small = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  const uint32_t special = 0x7f800000U | (magnitude > kInfinity ? kQuiet : 0);
  const uint32_t normal = (magnitude << 13) + (kBiases << 23);
  return std::bit_cast<float>(sign | (magnitude < kSmallestNormal ? small
                                      : magnitude >= kInfinity    ? special
                                                                  : normal));
}
uint16_t float_to_half(float value);
INGOT_INLINE float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
INGOT_INLINE uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t nan = (bits >> 16 & 0x8000U) | 0x7fc0U, rounded = (bits + 0x7fffU + (bits >> 16 & 1)) >> 16;
  return static_cast<uint16_t>(value != value ? nan : rounded);
}
float e4m3_to_float(uint8_t bits);
uint8_t float_to_e4m3(float value);
float e5m2_to_float(uint8_t bits);
uint8_t float_to_e5m2(float value);

}  // namespace ingot::core
