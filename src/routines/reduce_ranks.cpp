// SPDX-License-Identifier: Apache-2.0
#include "routines/reduce_ranks.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "routines/routines.h"
#include "types/tensor.h"

namespace ingot::core::routines {
namespace {

constexpr size_t kBlock = 1024;  // elements that are reduced at a time: their sums stay in L1

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};

float wide(F16 value) { return half_to_float(value.bits); }
float wide(BF16 value) { return bfloat16_to_float(value.bits); }
// Integers wrap. No type is named in the declaration, which clang looks at for floats, too.
template <typename T>
  requires std::is_integral_v<T>
auto wide(T value) {
  return static_cast<std::make_unsigned_t<T>>(value);
}
template <typename T>
  requires std::is_floating_point_v<T>
T wide(T value) {
  return value;
}

template <typename T>
using Wide = decltype(wide(T{}));

template <typename T>
T narrow(Wide<T> value) {
  if constexpr (std::is_same_v<T, F16>)
    return {float_to_half(value)};
  else if constexpr (std::is_same_v<T, BF16>)
    return {float_to_bfloat16(value)};
  else
    return static_cast<T>(value);
}

template <typename T>
constexpr bool kIsSigned = std::is_integral_v<T> && std::is_signed_v<T>;

template <typename T>
bool is_less(Wide<T> a, Wide<T> b) {
  if constexpr (kIsSigned<T>)
    return static_cast<T>(a) < static_cast<T>(b);
  else
    return a < b;
}

template <typename T>
struct Sum {
  static Wide<T> of(Wide<T> a, Wide<T> b) { return static_cast<Wide<T>>(a + b); }
};
template <typename T>
struct Product {
  // Narrow unsigned numbers become int, whose overflow is undefined.
  static Wide<T> of(Wide<T> a, Wide<T> b) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<Wide<T>>(uint64_t{a} * uint64_t{b});
    else
      return a * b;
  }
};
template <typename T>
struct Maximum {
  static Wide<T> of(Wide<T> a, Wide<T> b) { return a != a || is_less<T>(b, a) ? a : b; }
};
template <typename T>
struct Minimum {
  static Wide<T> of(Wide<T> a, Wide<T> b) { return a != a || is_less<T>(a, b) ? a : b; }
};

template <typename T>
void load(const std::byte* part, size_t first, size_t count, T* values) {
  std::memcpy(values, part + first * sizeof(T), count * sizeof(T));
}

template <typename T, template <typename> typename Reduction>
void reduce(std::span<const std::byte* const> parts, size_t elements, double factor, std::byte* result) {
  T values[kBlock];
  Wide<T> sums[kBlock];
  for (size_t first = 0; first < elements; first += kBlock) {
    const size_t count = std::min(kBlock, elements - first);
    load(parts[0], first, count, values);
    for (size_t i = 0; i < count; ++i) sums[i] = wide(values[i]);
    for (size_t r = 1; r < parts.size(); ++r) {
      load(parts[r], first, count, values);
      for (size_t i = 0; i < count; ++i) sums[i] = Reduction<T>::of(sums[i], wide(values[i]));
    }
    if (factor != 1)
      for (size_t i = 0; i < count; ++i)
        sums[i] = static_cast<Wide<T>>(sums[i] / static_cast<Wide<T>>(factor));
    for (size_t i = 0; i < count; ++i) values[i] = narrow<T>(sums[i]);
    std::memcpy(result + first * sizeof(T), values, count * sizeof(T));
  }
}

template <typename T>
void reduce_as(std::string_view reduction, std::span<const std::byte* const> parts, size_t elements,
               std::byte* result) {
  if (reduction == "sum") return reduce<T, Sum>(parts, elements, 1, result);
  if (reduction == "product") return reduce<T, Product>(parts, elements, 1, result);
  if (reduction == "max") return reduce<T, Maximum>(parts, elements, 1, result);
  if (reduction == "min") return reduce<T, Minimum>(parts, elements, 1, result);
  require_fit(reduction == "avg" && std::is_floating_point_v<Wide<T>>, "all_reduce");
  reduce<T, Sum>(parts, elements, static_cast<double>(parts.size()), result);
}

}  // namespace

void reduce_ranks(std::string_view reduction, DType dtype, std::span<const std::byte* const> parts,
                  size_t elements, std::byte* result) {
  switch (dtype) {
    case DType::kF64:
      return reduce_as<double>(reduction, parts, elements, result);
    case DType::kF32:
      return reduce_as<float>(reduction, parts, elements, result);
    case DType::kF16:
      return reduce_as<F16>(reduction, parts, elements, result);
    case DType::kBF16:
      return reduce_as<BF16>(reduction, parts, elements, result);
    case DType::kI64:
      return reduce_as<int64_t>(reduction, parts, elements, result);
    case DType::kI32:
      return reduce_as<int32_t>(reduction, parts, elements, result);
    case DType::kI16:
      return reduce_as<int16_t>(reduction, parts, elements, result);
    case DType::kI8:
      return reduce_as<int8_t>(reduction, parts, elements, result);
    case DType::kU8:
      return reduce_as<uint8_t>(reduction, parts, elements, result);
    case DType::kU16:
      return reduce_as<uint16_t>(reduction, parts, elements, result);
    case DType::kU32:
      return reduce_as<uint32_t>(reduction, parts, elements, result);
    case DType::kU64:
      return reduce_as<uint64_t>(reduction, parts, elements, result);
    default:
      require_fit(false, "all_reduce");
  }
}

}  // namespace ingot::core::routines
