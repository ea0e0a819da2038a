// SPDX-License-Identifier: Apache-2.0
// f16 and bf16 as the C++ headers convert them, against the library's own conversions and against arithmetic.
#include "ingot/half.h"

#include <cmath>
#include <limits>
#include <random>

#include <gmock/gmock.h>

#include "ingot/tensor.h"
#include "types/tensor.h"

namespace ingot {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float as_float(uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Half, EveryF16SurvivesAWayToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    Float16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = half;
    const bool is_nan = (bits & 0x7FFF) > 0x7C00;
    ASSERT_EQ(std::isnan(value), is_nan) << bits;
    if (is_nan) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(value))));
    } else {
      ASSERT_EQ(Float16(value).bits, bits);
      ASSERT_EQ(value, core::half_to_float(half.bits));
    }
  }
}

TEST(Half, EveryBf16SurvivesAWayToFloatAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    BFloat16 half;
    half.bits = static_cast<uint16_t>(bits);
    const float value = half;
    if ((bits & 0x7FFF) > 0x7F80) {
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(value))));
    } else {
      ASSERT_EQ(BFloat16(value).bits, bits);
    }
  }
}

// The midpoint of two neighbours rounds to the even one, values next to it to the nearer one.
TEST(Half, RoundsToTheNearestTiesToEven) {
  for (uint16_t bits = 0; bits < 0x7C00; ++bits) {
    Float16 low, high;
    low.bits = bits;
    high.bits = static_cast<uint16_t>(bits + 1);
    const float above = high.bits == 0x7C00 ? 65536.0F : static_cast<float>(high);
    const float middle = (static_cast<float>(low) + above) / 2;
    ASSERT_EQ(Float16(middle).bits, bits % 2 == 0 ? low.bits : high.bits) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, 0.0F)).bits, low.bits) << bits;
    ASSERT_EQ(Float16(std::nextafter(middle, kInfinity)).bits, high.bits) << bits;
    ASSERT_EQ(Float16(-middle).bits, Float16(middle).bits | 0x8000) << bits;
  }
  EXPECT_EQ(static_cast<float>(Float16(1e9F)), kInfinity);
  EXPECT_EQ(Float16(1e-9F).bits, 0);
  EXPECT_EQ(Float16(-0.0F).bits, 0x8000);
}

TEST(Half, Bf16RoundsToTheNearestTiesToEven) {
  EXPECT_EQ(BFloat16(as_float(0x3F808000)).bits, 0x3F80);
  EXPECT_EQ(BFloat16(as_float(0x3F818000)).bits, 0x3F82);
  EXPECT_EQ(BFloat16(as_float(0x3F808001)).bits, 0x3F81);
  EXPECT_EQ(BFloat16(as_float(0x3F807FFF)).bits, 0x3F80);
  EXPECT_EQ(BFloat16(as_float(0x7F7FFFFF)).bits, 0x7F80);  // past the largest
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(as_float(0x7F800001)))));
}

TEST(Half, AgreesWithTheLibrary) {
  std::mt19937 random(3);
  for (int i = 0; i < 1'000'000; ++i) {
    const float value = as_float(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    ASSERT_EQ(Float16(value).bits, core::float_to_half(value)) << value;
  }
}

TEST(Half, IsAnElementOfTensors) {
  static_assert(dtype_of<Float16>() == DType::kF16 && dtype_of<BFloat16>() == DType::kBF16);
  static_assert(Float16(1.5F).bits == 0x3E00 && static_cast<float>(BFloat16(2.0F)) == 2.0F);
  std::vector<Float16> values = {Float16(1.0F), Float16(-2.5F)};
  const Tensor tensor(values, {2});
  EXPECT_EQ(tensor.dtype(), DType::kF16);
  EXPECT_EQ(tensor.bytes(), 4u);
  EXPECT_EQ(static_cast<float>(tensor.values<Float16>()[1]), -2.5F);
  EXPECT_THROW((void)tensor.values<BFloat16>(), UserError);
  EXPECT_EQ(Tensor::empty(DType::kBF16, {3}).values<BFloat16>().size(), 3u);
}

}  // namespace
}  // namespace ingot
