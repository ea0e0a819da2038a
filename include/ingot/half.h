// SPDX-License-Identifier: Apache-2.0
// The 16-bit floating-point types that C++20 lacks, as elements of tensors: storage and conversion only.
#pragma once

#include "ingot/require_cpp20.h"
#if INGOT_HAS_CPP20

#include <bit>
#include <cstdint>

namespace ingot {
namespace detail {

// Rounds off the low `count` bits (1 to 31): to nearest, ties to even.
constexpr uint32_t round_off(uint32_t bits, uint32_t count) {
  const uint32_t half = (uint32_t{1} << (count - 1)) - 1, last = (bits >> count) & 1;
  return (bits + half + last) >> count;
}

constexpr uint16_t float_to_f16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  const uint32_t exponent = magnitude >> 23;
  uint32_t result = 0;
  if (magnitude > 0x7F800000) {
    result = 0x7E00 | (magnitude >> 13 & 0x3FF);  // NaN stays NaN, with as many payload bits as fit
  } else if (magnitude >= 0x47800000) {
    result = 0x7C00;  // 65536 and more: infinity
  } else if (exponent >= 113) {
    result = round_off(magnitude - (uint32_t{112} << 23), 13);  // may carry into infinity
  } else if (exponent >= 102) {
    result = round_off((magnitude & 0x7FFFFF) | 0x800000, 126 - exponent);  // a multiple of 2^-24
  }
  return static_cast<uint16_t>(sign | result);
}

constexpr float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, magnitude = bits & 0x7FFF;
  if (magnitude >= 0x7C00)  // infinity and NaN
    return std::bit_cast<float>(sign | 0x7F800000 | (magnitude & 0x3FF) << 13);
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (uint32_t{112} << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(small));
}

constexpr uint16_t float_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);  // NaN stays NaN
  return static_cast<uint16_t>(round_off(bits, 16));
}

}  // namespace detail

// IEEE binary16: 11 bits of precision, up to 65504. From float: to nearest, ties to even; infinity beyond the
// largest value. To float: exact.
struct Float16 {
  uint16_t bits = 0;

  constexpr Float16() = default;
  constexpr explicit Float16(float value) : bits(detail::float_to_f16(value)) {}
  constexpr operator float() const { return detail::f16_to_float(bits); }
};

// The upper half of a float: the same range with 8 bits of precision. From float: to nearest, ties to even.
// To float: exact.
struct BFloat16 {
  uint16_t bits = 0;

  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits(detail::float_to_bf16(value)) {}
  constexpr operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace ingot

#endif  // INGOT_HAS_CPP20
