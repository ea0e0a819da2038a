// SPDX-License-Identifier: Apache-2.0
// Narrow floating-point formats, by integer arithmetic only: the same on every machine.
#include "types/float_formats.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace ingot::core {
namespace {

// Bits are sign, exponent, mantissa. `overflow` is the code that too large values get, `nan` the NaN that is
// produced.
struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  uint32_t largest;  // code of the largest finite value
  uint32_t overflow;
  uint32_t nan;

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint32_t sign() const { return 1U << (exponent_bits + mantissa_bits); }
};

constexpr FloatFormat kHalf{5, 10, 0x7BFF, 0x7C00, 0x7E00};
constexpr FloatFormat kE4M3{4, 3, 0x7E, 0x7E, 0x7F};  // has no infinity: saturates
constexpr FloatFormat kE5M2{5, 2, 0x7B, 0x7C, 0x7F};

constexpr int kFloatMantissaBits = 23;
constexpr int kFloatBias = 127;

float decode(uint32_t code, const FloatFormat& format) {
  const float sign = (code & format.sign()) != 0 ? -1.0F : 1.0F;
  const uint32_t magnitude = code & (format.sign() - 1);
  if (magnitude > format.largest) {
    const bool infinite = magnitude == format.overflow;
    return std::copysign(
        infinite ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN(), sign);
  }
  const uint32_t implicit = 1U << format.mantissa_bits;
  const uint32_t mantissa = magnitude & (implicit - 1);
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const uint32_t significand = exponent == 0 ? mantissa : mantissa | implicit;
  const int scale = std::max(exponent, 1) - format.bias() - format.mantissa_bits;
  return sign * std::ldexp(static_cast<float>(significand), scale);
}

uint32_t encode(float value, const FloatFormat& format) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 31) != 0 ? format.sign() : 0;
  if (std::isnan(value)) return sign | format.nan;
  if (std::isinf(value)) return sign | format.overflow;
  const int stored_exponent = static_cast<int>((bits >> kFloatMantissaBits) & 0xFF);
  const uint32_t implicit = stored_exponent == 0 ? 0 : 1U << kFloatMantissaBits;
  const uint32_t significand = (bits & ((1U << kFloatMantissaBits) - 1)) | implicit;
  const int exponent = std::max(stored_exponent, 1) - kFloatBias;
  const int least_exponent = 1 - format.bias();
  const int shift = kFloatMantissaBits - format.mantissa_bits + std::max(0, least_exponent - exponent);
  if (shift > kFloatMantissaBits + 1) return sign;  // less than half of the smallest value
  const uint32_t odd = (significand >> shift) & 1;
  const uint32_t rounded = (significand + (1U << (shift - 1)) - 1 + odd) >> shift;
  // The implicit bit of a normal number adds one to the exponent field, and so does a carry out of rounding.
  const int field = std::max(exponent, least_exponent) - least_exponent;
  const uint32_t magnitude = (static_cast<uint32_t>(field) << format.mantissa_bits) + rounded;
  return sign | (magnitude > format.largest ? format.overflow : magnitude);
}

}  // namespace

uint16_t float_to_half(float value) { return static_cast<uint16_t>(encode(value, kHalf)); }
float e4m3_to_float(uint8_t bits) { return decode(bits, kE4M3); }
uint8_t float_to_e4m3(float value) { return static_cast<uint8_t>(encode(value, kE4M3)); }
float e5m2_to_float(uint8_t bits) { return decode(bits, kE5M2); }
uint8_t float_to_e5m2(float value) { return static_cast<uint8_t>(encode(value, kE5M2)); }

}  // namespace ingot::core
