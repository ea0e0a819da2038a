// SPDX-License-Identifier: Apache-2.0
#include "types/lossless.h"

#include <algorithm>

namespace ingot::core {
namespace {

// Finite values are below 2^most in size, and multiples of 2^least.
struct FloatLimits {
  DType dtype;
  int significant_bits, most, least;
  bool has_infinity = true;
};
constexpr FloatLimits kFloatLimits[] = {
    {DType::kF64, 53, 1024, -1074}, {DType::kF32, 24, 128, -149},    {DType::kF16, 11, 16, -24},
    {DType::kBF16, 8, 128, -133},   {DType::kE4M3, 4, 9, -9, false}, {DType::kE5M2, 3, 16, -16},
};

const FloatLimits& limits_of(DType dtype) {
  return *std::ranges::find(kFloatLimits, dtype, &FloatLimits::dtype);
}

bool holds(const FloatLimits& to, const FloatLimits& from) {
  return from.significant_bits <= to.significant_bits && from.most <= to.most && from.least >= to.least &&
         (to.has_infinity || !from.has_infinity);
}

int value_bits(DType integer) { return bit_width(integer) - (is_signed(integer) ? 1 : 0); }

}  // namespace

bool is_lossless(DType from, DType to) {
  if (is_complex(from) || is_complex(to)) return false;
  if (from == to || from == DType::kBool) return true;
  if (is_floating(from)) return is_floating(to) && holds(limits_of(to), limits_of(from));
  // The limits of all formats are beyond the integers whose bits they hold.
  if (is_floating(to)) return value_bits(from) <= limits_of(to).significant_bits;
  return is_integer(to) && value_bits(from) <= value_bits(to) && (!is_signed(from) || is_signed(to));
}

}  // namespace ingot::core
