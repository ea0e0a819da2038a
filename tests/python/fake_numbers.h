// SPDX-License-Identifier: Apache-2.0
// 16-bit numbers of the stand-ins for NVIDIA's libraries.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

inline float wide(Brain value) {
  const uint32_t bits = uint32_t{value.bits} << 16;
  float result;
  return std::memcpy(&result, &bits, 4), result;
}
inline float wide(Half value) {
  _Float16 half;
  return std::memcpy(&half, &value.bits, 2), static_cast<float>(half);
}
template <typename T>
T wide(T value) {
  return value;
}
template <typename T, typename Wide>
T narrow(Wide value) {
  if constexpr (std::is_same_v<T, Half>) {
    const auto half = static_cast<_Float16>(value);
    Half result;
    return std::memcpy(&result, &half, 2), result;
  } else if constexpr (std::is_same_v<T, Brain>) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
  } else {
    return static_cast<T>(value);
  }
}
