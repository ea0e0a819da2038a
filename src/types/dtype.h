// SPDX-License-Identifier: Apache-2.0
// Element types. Sizes are counted in bits: int4 and uint4 have four.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ingot::core {

// Numbers are stored in engine files and in the C API: never renumber, only append.
enum class DType : uint8_t {
  kBool = 1,
  kU8 = 2,
  kI8 = 3,
  kI16 = 4,
  kI32 = 5,
  kI64 = 6,
  kF16 = 7,
  kBF16 = 8,
  kF32 = 9,
  kF64 = 10,
  kU16 = 11,
  kU32 = 12,
  kU64 = 13,
  kE4M3 = 14,  // storage only: float8_e4m3fn
  kE5M2 = 15,  // storage only: float8_e5m2
  kI4 = 16,    // storage only, two to a byte, low nibble first
  kU4 = 17,    // storage only
  kC64 = 18,   // complex of two f32
  kC128 = 19,
};

int bit_width(DType dtype);
std::string_view name(DType dtype);  // "f32", "i64", "bool", "e4m3", "c64"
std::optional<DType> parse_dtype(std::string_view name);
bool is_floating(DType dtype);  // f16 bf16 f32 f64 and the fp8 storage types
inline bool is_half(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }
bool is_integer(DType dtype);  // signed and unsigned, not bool
bool is_signed(DType dtype);
bool is_complex(DType dtype);
DType complex_of(DType part);       // c64 of f32, c128 of f64
DType component_of(DType complex);  // itself if it is real

// Bytes of one row of `elements` elements: bits rounded up per innermost row.
inline int64_t row_bytes(DType dtype, int64_t elements) { return (elements * bit_width(dtype) + 7) / 8; }

// torch's promotion of two tensor dtypes of the same category; commutative. UnsupportedError if torch has
// none (fp8; u16, u32 and u64 with anything but floating types).
DType promote(DType a, DType b);

}  // namespace ingot::core
