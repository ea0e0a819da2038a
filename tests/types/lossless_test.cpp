// SPDX-License-Identifier: Apache-2.0
#include "types/lossless.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "types/tensor.h"

namespace ingot::core {
namespace {

constexpr DType kFloats[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2};
constexpr DType kIntegers[] = {DType::kU8, DType::kI8, DType::kI16, DType::kI32, DType::kI64};

double stored(DType dtype, double value) {
  const Tensor tensor = make_tensor(dtype, {});
  write_double(tensor.view(), {}, value);
  return read_double(tensor.view(), {});
}

bool is_same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// All values of a dtype of up to 16 bits.
bool keeps_all(DType from, DType to) {
  const Tensor tensor = make_tensor(from, {});
  for (int bits = 0; bits < 1 << bit_width(from); ++bits) {
    for (int byte = 0; byte < bit_width(from) / 8; ++byte)
      tensor.data.get()[byte] = static_cast<std::byte>(bits >> (8 * byte));
    const double value = read_double(tensor.view(), {});
    if (!is_same(stored(to, value), value)) return false;
  }
  return true;
}

TEST(Lossless, ConversionsOfShortDtypesKeepAllValues) {
  for (const DType from :
       {DType::kU8, DType::kI8, DType::kI16, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2}) {
    for (const DType to : kFloats)
      EXPECT_EQ(is_lossless(from, to), keeps_all(from, to)) << name(from) << " to " << name(to);
  }
}

TEST(Lossless, LongDtypes) {
  for (const DType to : {DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2}) {
    for (const DType from : {DType::kF32, DType::kF64, DType::kI32, DType::kI64})
      EXPECT_FALSE(is_lossless(from, to)) << name(from) << " to " << name(to);
  }
  EXPECT_TRUE(is_lossless(DType::kF32, DType::kF64));
  EXPECT_FALSE(is_lossless(DType::kF64, DType::kF32));
  EXPECT_TRUE(is_lossless(DType::kI32, DType::kF64));
  EXPECT_FALSE(is_lossless(DType::kI32, DType::kF32));
  EXPECT_FALSE(is_lossless(DType::kI64, DType::kF64));
}

TEST(Lossless, IntegersAndBools) {
  for (const DType dtype : kIntegers) {
    EXPECT_TRUE(is_lossless(dtype, dtype));
    EXPECT_TRUE(is_lossless(DType::kBool, dtype));
    EXPECT_FALSE(is_lossless(dtype, DType::kBool));
    EXPECT_EQ(is_lossless(DType::kU8, dtype), dtype != DType::kI8) << name(dtype);
    EXPECT_EQ(is_lossless(dtype, DType::kU8), dtype == DType::kU8) << name(dtype);
  }
  EXPECT_TRUE(is_lossless(DType::kI8, DType::kI16));
  EXPECT_FALSE(is_lossless(DType::kI64, DType::kI32));
  EXPECT_FALSE(is_lossless(DType::kC64, DType::kC64));
}

}  // namespace
}  // namespace ingot::core
