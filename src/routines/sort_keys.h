// SPDX-License-Identifier: Apache-2.0
// Maps elements to unsigned integers in sorting order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "types/tensor.h"

namespace ingot::core::routines {

struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// Larger values have larger keys. Both zeros have the same key, and so have all NaNs: the largest.
template <typename Real>
auto real_key(Real value) {
  using Bits = std::conditional_t<sizeof(Real) == 8, uint64_t, uint32_t>;
  if (std::isnan(value)) return ~Bits{0};
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const Bits bits = std::bit_cast<Bits>(value == 0 ? Real{0} : value);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}
inline uint32_t sort_key(float value) { return real_key(value); }
inline uint64_t sort_key(double value) { return real_key(value); }
// The same for 16 bits, of which kInfinity has no fraction: without a conversion to f32.
template <uint32_t kInfinity>
uint32_t half_key(uint16_t bits) {
  constexpr uint32_t kSign = 0x8000;
  const uint32_t magnitude = bits & (kSign - 1);
  if (magnitude > kInfinity) return ~uint32_t{0};
  return (bits & kSign) != 0 ? kSign - magnitude : kSign + magnitude;
}
inline uint32_t sort_key(Half value) { return half_key<0x7c00>(value.bits); }
inline uint32_t sort_key(BFloat16 value) { return half_key<0x7f80>(value.bits); }
inline uint32_t sort_key(uint8_t value) { return value; }
template <typename Integer>
  requires std::is_integral_v<Integer> && std::is_signed_v<Integer>
auto sort_key(Integer value) {
  using Key = std::conditional_t<sizeof(Integer) == 8, uint64_t, uint32_t>;
  return static_cast<Key>(value) ^ (Key{1} << (8 * sizeof(Key) - 1));
}

// The element that has the key: its lowest bits count.
template <typename Integer>
  requires std::is_integral_v<Integer>
Integer element_of_key(uint64_t key) {
  return static_cast<Integer>(key ^ sort_key(Integer{0}));
}

template <typename Real>
constexpr auto kNanKey = ~decltype(sort_key(Real{})){0};

// An element of a line: its key and its original index. Descending lines store complemented keys, so that the
// order is stable in both directions.
template <typename Key>
struct SortItem {
  Key key;
  Key index;
  bool operator<(const SortItem& other) const {
    if constexpr (sizeof(Key) == sizeof(uint32_t)) return joined() < other.joined();
    return key != other.key ? key < other.key : index < other.index;
  }
  uint64_t joined() const { return uint64_t{key} << 32 | index; }  // compared without a branch
};

}  // namespace ingot::core::routines
