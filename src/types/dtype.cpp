// SPDX-License-Identifier: Apache-2.0
#include "types/dtype.h"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

enum class Category { kBool, kUnsigned, kSigned, kFloat, kComplex };

struct DTypeFacts {
  DType dtype;
  std::string_view name;
  int bits;
  Category category;
};

constexpr std::array kFacts = {
    DTypeFacts{DType::kBool, "bool", 8, Category::kBool},
    DTypeFacts{DType::kU8, "u8", 8, Category::kUnsigned},
    DTypeFacts{DType::kI8, "i8", 8, Category::kSigned},
    DTypeFacts{DType::kI16, "i16", 16, Category::kSigned},
    DTypeFacts{DType::kI32, "i32", 32, Category::kSigned},
    DTypeFacts{DType::kI64, "i64", 64, Category::kSigned},
    DTypeFacts{DType::kF16, "f16", 16, Category::kFloat},
    DTypeFacts{DType::kBF16, "bf16", 16, Category::kFloat},
    DTypeFacts{DType::kF32, "f32", 32, Category::kFloat},
    DTypeFacts{DType::kF64, "f64", 64, Category::kFloat},
    DTypeFacts{DType::kU16, "u16", 16, Category::kUnsigned},
    DTypeFacts{DType::kU32, "u32", 32, Category::kUnsigned},
    DTypeFacts{DType::kU64, "u64", 64, Category::kUnsigned},
    DTypeFacts{DType::kE4M3, "e4m3", 8, Category::kFloat},
    DTypeFacts{DType::kE5M2, "e5m2", 8, Category::kFloat},
    DTypeFacts{DType::kI4, "i4", 4, Category::kSigned},
    DTypeFacts{DType::kU4, "u4", 4, Category::kUnsigned},
    DTypeFacts{DType::kC64, "c64", 64, Category::kComplex},
    DTypeFacts{DType::kC128, "c128", 128, Category::kComplex},
};

const DTypeFacts& facts(DType dtype) {
  const size_t index = static_cast<size_t>(dtype) - 1;
  invariant(index < kFacts.size() && kFacts[index].dtype == dtype, "the dtype is not in the table");
  return kFacts[index];
}

// torch promotes u16, u32 and u64 with floating types only, and storage-only types with nothing.
bool is_wide_unsigned(DType dtype) {
  return facts(dtype).category == Category::kUnsigned && dtype != DType::kU8;
}

bool is_storage_only(DType dtype) {
  return dtype == DType::kE4M3 || dtype == DType::kE5M2 || dtype == DType::kI4 || dtype == DType::kU4;
}

[[noreturn]] void refuse_promotion(DType a, DType b) {
  throw UnsupportedError("INGOT-N101", fmt::format("{} and {} have no common dtype", name(a), name(b)),
                         "convert one of the operands explicitly");
}

DType promote_integers(DType a, DType b) {
  if (is_signed(a) == is_signed(b)) return bit_width(a) >= bit_width(b) ? a : b;
  const DType signed_one = is_signed(a) ? a : b;
  return signed_one == DType::kI8 ? DType::kI16 : signed_one;  // the other is u8
}

DType promote_floats(DType a, DType b) {
  if (bit_width(a) == bit_width(b)) return DType::kF32;  // f16 with bf16
  return bit_width(a) > bit_width(b) ? a : b;
}

DType promote_complex(DType complex, DType other) {
  return other == DType::kF64 || other == DType::kC128 ? DType::kC128 : complex;
}

}  // namespace

int bit_width(DType dtype) { return facts(dtype).bits; }

std::string_view name(DType dtype) { return facts(dtype).name; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeFacts& each : kFacts) {
    if (each.name == name) return each.dtype;
  }
  return std::nullopt;
}

bool is_floating(DType dtype) { return facts(dtype).category == Category::kFloat; }

bool is_integer(DType dtype) {
  return facts(dtype).category == Category::kSigned || facts(dtype).category == Category::kUnsigned;
}

bool is_signed(DType dtype) {
  return facts(dtype).category != Category::kBool && facts(dtype).category != Category::kUnsigned;
}

bool is_complex(DType dtype) { return facts(dtype).category == Category::kComplex; }

DType complex_of(DType part) { return part == DType::kF64 ? DType::kC128 : DType::kC64; }

DType component_of(DType complex) {
  if (complex == DType::kC64) return DType::kF32;
  return complex == DType::kC128 ? DType::kF64 : complex;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_storage_only(a) || is_storage_only(b)) refuse_promotion(a, b);
  if (is_wide_unsigned(a) && !is_floating(b)) refuse_promotion(a, b);
  if (is_wide_unsigned(b) && !is_floating(a)) refuse_promotion(a, b);
  const Category low = std::min(facts(a).category, facts(b).category);
  const DType higher = facts(a).category >= facts(b).category ? a : b;
  const DType other = higher == a ? b : a;
  if (low == Category::kBool) return higher;
  if (is_complex(higher)) return promote_complex(higher, other);
  if (!is_floating(higher)) return promote_integers(a, b);
  return is_floating(other) ? promote_floats(a, b) : higher;
}

}  // namespace ingot::core
