// SPDX-License-Identifier: Apache-2.0
// The digests are of torch's own conversions of the same inputs.
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/hash.h"
#include "types/tensor.h"

namespace ingot::core {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// All codes as floats, NaN as zero.
template <typename Code>
std::string decode_all(float (*decode)(Code)) {
  std::vector<float> values;
  for (uint32_t code = 0; code <= std::numeric_limits<Code>::max(); ++code) {
    const float value = decode(static_cast<Code>(code));
    values.push_back(std::isnan(value) ? 0.0F : value);
  }
  return hex(digest(std::as_bytes(std::span(values))));
}

// Codes of every upper half of a float with eight lower halves, which hold all ties; of NaN zero.
template <typename Code>
std::string encode_spread(Code (*encode)(float)) {
  constexpr std::array<uint32_t, 8> kLower = {0, 1, 0x0FFF, 0x1000, 0x7FFF, 0x8000, 0x8001, 0xFFFF};
  std::vector<Code> codes;
  for (uint32_t upper = 0; upper <= 0xFFFF; ++upper) {
    for (const uint32_t lower : kLower) {
      const auto value = std::bit_cast<float>(upper << 16 | lower);
      codes.push_back(std::isnan(value) ? Code{0} : encode(value));
    }
  }
  return hex(digest(std::as_bytes(std::span(codes))));
}

TEST(FloatFormats, DecodeEveryCodeAsTorchDoes) {
  EXPECT_EQ(decode_all(half_to_float), "faa6d965574036872b0d39a42d1f8bee361d5be92b1e718155a69556a5abacdd");
  EXPECT_EQ(decode_all(bfloat16_to_float),
            "2950e27364395060b01ae85b45dd15a2ab8891f6ee8b0af2b541dbda5524d0b4");
  EXPECT_EQ(decode_all(e4m3_to_float), "0c5d81084420441d5c98db2c276b865fc29738d60fba9c32b55aa8214762b794");
  EXPECT_EQ(decode_all(e5m2_to_float), "f3e7031368f3245d56c8114ed15a46144bf609430c117e10fc3e0f5114d773b3");
}

TEST(FloatFormats, EncodeAsTorchDoes) {
  EXPECT_EQ(encode_spread(float_to_half), "3ccb3030ae216fdd122f14c3c36e6a45c745e6ca99c4ce34eb03e743aa15f1e3");
  EXPECT_EQ(encode_spread(float_to_bfloat16),
            "a5e04708aa8c91f9cb22a77e44bcf5bbc7e19cff29bc043a9e318a705feac171");
  EXPECT_EQ(encode_spread(float_to_e4m3), "dfc84f261c417bd656ceaf1aff02da9cdc1270c671a55330bff18b338a6de5de");
  EXPECT_EQ(encode_spread(float_to_e5m2), "2caa0135823ee1b420b2c93adb8eceb9a9cc58de83e5a6247d2de422c12200d5");
}

template <typename Code>
void expect_round_trip(float (*decode)(Code), Code (*encode)(float)) {
  for (uint32_t code = 0; code <= std::numeric_limits<Code>::max(); ++code) {
    const float value = decode(static_cast<Code>(code));
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(decode(encode(value)))) << code;
    } else {
      EXPECT_EQ(encode(value), code);
    }
  }
}

TEST(FloatFormats, EveryCodeSurvivesTheRoundTrip) {
  expect_round_trip(half_to_float, float_to_half);
  expect_round_trip(bfloat16_to_float, float_to_bfloat16);
  expect_round_trip(e4m3_to_float, float_to_e4m3);
  expect_round_trip(e5m2_to_float, float_to_e5m2);
}

TEST(FloatFormats, ExtremesAndNan) {
  EXPECT_EQ(half_to_float(0x7C00), kInfinity);
  EXPECT_EQ(float_to_half(65519.996F), 0x7BFF);
  EXPECT_EQ(float_to_half(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_half(-kInfinity), 0xFC00);
  EXPECT_EQ(float_to_bfloat16(kInfinity), 0x7F80);
  EXPECT_EQ(e4m3_to_float(0x7E), 448.0F);
  EXPECT_EQ(float_to_e4m3(465.0F), 0x7E);
  EXPECT_EQ(float_to_e4m3(-kInfinity), 0xFE);
  EXPECT_EQ(e5m2_to_float(0x7C), kInfinity);
  EXPECT_EQ(e5m2_to_float(0x7B), 57344.0F);
  EXPECT_EQ(float_to_e5m2(1e6F), 0x7C);
  EXPECT_TRUE(std::isnan(half_to_float(float_to_half(kNan))));
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::bit_cast<float>(0x7F800001U)))));
  EXPECT_TRUE(std::isnan(e4m3_to_float(float_to_e4m3(kNan))));
  EXPECT_TRUE(std::isnan(e5m2_to_float(float_to_e5m2(kNan))));
  EXPECT_TRUE(std::signbit(half_to_float(0x8000)));
}

}  // namespace
}  // namespace ingot::core
