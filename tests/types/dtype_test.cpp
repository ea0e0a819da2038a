// SPDX-License-Identifier: Apache-2.0
#include "types/dtype.h"

#include <array>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "support/error.h"

namespace ingot::core {
namespace {

constexpr int kCount = 19;

DType dtype(int number) { return static_cast<DType>(number); }

TEST(DType, NamesReadBack) {
  for (int i = 1; i <= kCount; ++i) EXPECT_EQ(parse_dtype(name(dtype(i))), dtype(i)) << i;
  EXPECT_EQ(parse_dtype("float32"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, UnknownNumberIsOurBug) {
  EXPECT_THROW(bit_width(dtype(0)), InternalError);
  EXPECT_THROW(bit_width(dtype(kCount + 1)), InternalError);
}

TEST(DType, RowsAreRoundedUpToBytes) {
  EXPECT_EQ(row_bytes(DType::kI4, 3), 2);
  EXPECT_EQ(row_bytes(DType::kU4, 4), 2);
  EXPECT_EQ(row_bytes(DType::kC128, 3), 48);
  EXPECT_EQ(row_bytes(DType::kBool, 5), 5);
}

TEST(DType, Categories) {
  EXPECT_TRUE(is_floating(DType::kE5M2));
  EXPECT_FALSE(is_floating(DType::kC64));
  EXPECT_TRUE(is_complex(DType::kC64));
  EXPECT_TRUE(is_integer(DType::kU4));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_TRUE(is_signed(DType::kI4));
  EXPECT_FALSE(is_signed(DType::kU64));
  EXPECT_FALSE(is_signed(DType::kBool));
}

// torch.promote_types; "-" where it raises. Rows and columns are in the order of the first line.
constexpr std::string_view kTorchPromotions = R"(
bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 u16 u32 u64 e4m3 e5m2 c64 c128
bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 - - - - - c64 c128
u8 u8 i16 i16 i32 i64 f16 bf16 f32 f64 - - - - - c64 c128
i8 i16 i8 i16 i32 i64 f16 bf16 f32 f64 - - - - - c64 c128
i16 i16 i16 i16 i32 i64 f16 bf16 f32 f64 - - - - - c64 c128
i32 i32 i32 i32 i32 i64 f16 bf16 f32 f64 - - - - - c64 c128
i64 i64 i64 i64 i64 i64 f16 bf16 f32 f64 - - - - - c64 c128
f16 f16 f16 f16 f16 f16 f16 f32 f32 f64 f16 f16 f16 - - c64 c128
bf16 bf16 bf16 bf16 bf16 bf16 f32 bf16 f32 f64 bf16 bf16 bf16 - - c64 c128
f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 f32 f32 f32 - - c64 c128
f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 - - c128 c128
- - - - - - f16 bf16 f32 f64 u16 - - - - - -
- - - - - - f16 bf16 f32 f64 - u32 - - - - -
- - - - - - f16 bf16 f32 f64 - - u64 - - - -
- - - - - - - - - - - - - e4m3 - - -
- - - - - - - - - - - - - - e5m2 - -
c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 - - - - - c64 c128
c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 - - - - - c128 c128
)";

TEST(DType, PromotesAsTorchDoes) {
  std::istringstream words{std::string(kTorchPromotions)};
  std::array<DType, 17> order;
  std::string word;
  for (DType& each : order) {
    words >> word;
    each = parse_dtype(word).value();
  }
  for (const DType a : order) {
    for (const DType b : order) {
      words >> word;
      if (word == "-") {
        EXPECT_THROW(promote(a, b), UnsupportedError) << name(a) << " " << name(b);
      } else {
        EXPECT_EQ(name(promote(a, b)), word) << name(a) << " " << name(b);
      }
    }
  }
}

}  // namespace
}  // namespace ingot::core
