// SPDX-License-Identifier: Apache-2.0
#include "types/linear_dim.h"

#include <gtest/gtest.h>

#include "support/error.h"

namespace ingot::core {
namespace {

std::optional<LinearDim> linear_of(const char* text) { return linear_dim(parse_dim(text)); }

TEST(LinearDim, HasOneSymbolAPositiveFactorAndAnOffset) {
  EXPECT_EQ(linear_of("S"), (LinearDim{"S", 1, 0}));
  EXPECT_EQ(linear_of("2*S"), (LinearDim{"S", 2, 0}));
  EXPECT_EQ(linear_of("S - 3"), (LinearDim{"S", 1, -3}));
  EXPECT_EQ(linear_of("16*S + 1"), (LinearDim{"S", 16, 1}));
  for (const char* other : {"7", "-1*S", "2 - S", "S*S", "2*S*T", "S + T", "S*S + S", "floordiv(S, 2)",
                            "2*mod(S, 3) + 1", "max(S, 2)"})
    EXPECT_EQ(linear_of(other), std::nullopt) << other;
}

TEST(LinearDim, IsSolvedForItsSymbol) {
  const LinearDim odd = *linear_of("2*S + 1");
  for (int64_t symbol = -3; symbol < 20; ++symbol) {
    EXPECT_EQ(odd.symbol_of(odd.size_of(symbol)), symbol);
    EXPECT_EQ(odd.symbol_of(odd.size_of(symbol) + 1), symbol);
  }
  EXPECT_THROW((LinearDim{"S", 2, INT64_MIN}.symbol_of(0)), UserError);
  EXPECT_THROW(odd.size_of(INT64_MAX), UserError);
}

}  // namespace
}  // namespace ingot::core
