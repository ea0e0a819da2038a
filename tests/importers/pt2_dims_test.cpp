// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/pt2/dim_reader.h"
#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

constexpr const char* kS = "Symbol('s0', positive=True, integer=True)";

class DimReaderTest : public ::testing::Test {
 protected:
  std::string read(const std::string& text) { return reader_.read(text).to_string(); }
  // `%` stands for the symbol s0.
  std::string read_repr(std::string text) {
    for (size_t place; (place = text.find('%')) != std::string::npos;) text.replace(place, 1, kS);
    return read(text);
  }
  SymbolTable symbols_ = {{"s0", {.range = {0, 100}}}, {"s1", {.range = {1, 9}}}};
  DimReader reader_{symbols_};
};

TEST_F(DimReaderTest, ReadsRepr) {
  EXPECT_EQ(read_repr("%"), "s0");
  EXPECT_EQ(read_repr("Integer(-3)"), "-3");
  EXPECT_EQ(read_repr("Add(FloorDiv(Add(%, Integer(-1)), Integer(2)), Integer(1))"),
            reader_.read("(s0 - 1)//2 + 1").to_string());
  EXPECT_EQ(read_repr("Mul(Integer(2), %, %)"), "2*s0*s0");
  EXPECT_EQ(read_repr("Pow(%, Integer(2))"), "s0*s0");
  EXPECT_EQ(read_repr("Max(Integer(1), %)"), "max(s0, 1)");
  EXPECT_EQ(read_repr("Min(Integer(5), %)"), "min(s0, 5)");
  EXPECT_EQ(read_repr("Mod(%, Integer(4))"), "mod(s0, 4)");
  EXPECT_EQ(read_repr("PythonMod(%, Integer(4))"), "mod(s0, 4)");
  EXPECT_EQ(read_repr("CeilDiv(%, Integer(4))"), "floordiv(s0 + 3, 4)");
  EXPECT_EQ(read_repr("ModularIndexing(%, Integer(2), Integer(3))"), "mod(floordiv(s0, 2), 3)");
  EXPECT_EQ(read_repr("LShift(%, Integer(3))"), "8*s0");
  EXPECT_EQ(read_repr("RShift(%, Integer(3))"), "floordiv(s0, 8)");
  EXPECT_EQ(read_repr("Identity(%)"), "s0");
}

TEST_F(DimReaderTest, ReadsStrOfOlderWriters) {
  EXPECT_EQ(read("s0"), "s0");
  EXPECT_EQ(read("2*s0 + 3"), "2*s0 + 3");
  EXPECT_EQ(read("-s0 + 4"), "-s0 + 4");
  EXPECT_EQ(read("s0 - 2 - 3"), "s0 - 5");
  EXPECT_EQ(read("((s0 + 1)//2)"), "floordiv(s0 + 1, 2)");
  EXPECT_EQ(read("2*s0//3"), "floordiv(2*s0, 3)");
  EXPECT_EQ(read("s0**2*s1"), "s0*s0*s1");
  EXPECT_EQ(read("s0 % 4"), "mod(s0, 4)");
  EXPECT_EQ(read("Max(1, s0)"), "max(s0, 1)");
}

TEST_F(DimReaderTest, FollowsExactFloats) {
  EXPECT_EQ(read_repr("TruncToInt(Mul(Float('1.5', precision=53), ToFloat(%)))"), "floordiv(3*s0, 2)");
  EXPECT_EQ(read_repr("TruncToInt(Mul(Float('2.0', precision=53), ToFloat(%)))"), "2*s0");
  EXPECT_EQ(read_repr("TruncToInt(IntTrueDiv(%, Integer(2)))"), "floordiv(s0, 2)");
  EXPECT_EQ(read_repr("CeilToInt(IntTrueDiv(%, Integer(2)))"), "floordiv(s0 + 1, 2)");
  EXPECT_EQ(read_repr("FloorToInt(Add(IntTrueDiv(%, Integer(2)), Float('0.5', precision=53)))"),
            "floordiv(s0 + 1, 2)");
  EXPECT_EQ(read_repr("FloorToInt(IntTrueDiv(%, Symbol('s1', integer=True)))"), "floordiv(s0, s1)");
  EXPECT_EQ(read_repr("Mul(Rational(1, 2), Mul(Integer(2), %))").substr(0, 9),
            "$computed");  // 2*s0/2 is not reduced
}

TEST_F(DimReaderTest, GivesASymbolToWhatNoDimIs) {
  const std::string rounded = "TruncToInt(Mul(Float('0.1', precision=53), ToFloat(%)))";
  const std::string first = read_repr(rounded);
  EXPECT_TRUE(first.starts_with("$computed")) << first;
  EXPECT_TRUE(symbols_.contains(first));
  EXPECT_EQ(read_repr("Add(" + rounded + ", Integer(1))"), first + " + 1");
  EXPECT_NE(read_repr("TruncToInt(Mul(Float('0.3', precision=53), ToFloat(%)))"), first);
  EXPECT_TRUE(read_repr("Where(StrictLessThan(%, Integer(3)), Integer(3), %)").starts_with("$computed"));
  EXPECT_TRUE(read_repr("TruncToInt(IntTrueDiv(Integer(7), %))").starts_with("$computed"));  // s0 may be zero
  EXPECT_TRUE(read_repr("TruncToInt(IntTrueDiv(Add(%, Integer(-3)), Integer(2)))").starts_with("$computed"));
}

TEST_F(DimReaderTest, EntersUnknownSymbols) {
  EXPECT_EQ(read("s9 + u3"), "s9 + u3");
  EXPECT_EQ(symbols_.at("s9").range.min, 0);
  EXPECT_EQ(symbols_.at("u3").range.min, INT64_MIN);
}

TEST_F(DimReaderTest, RefusesWhatIsMalformed) {
  const std::string deep = std::string(100, '(') + "1" + std::string(100, ')');
  const std::string minus(1000, '-');
  for (const std::string& text :
       {std::string(), std::string("s0 +"), std::string("(s0"), std::string("Add(s0"), std::string("Add()"),
        std::string("s0)"), std::string("Symbol(s0)"), std::string("Symbol('s0"), std::string("Symbol('')"),
        std::string("Symbol('a b')"), std::string("12x"), std::string("99999999999999999999"),
        std::string("Where(s0, 'x)"), std::string("FloorDiv(s0, 0)"), std::string("s0 $ 1"),
        std::string("s.0"), deep, minus, std::string(20000, ' ')}) {
    try {
      FAIL() << text << " is read as " << read(text);
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U508") << text;
    }
  }
}

TEST_F(DimReaderTest, DoesNotMultiplyOutWithoutBound) {
  std::string sum = "a0", product;
  for (int i = 1; i < 64; ++i) sum += " + a" + std::to_string(i);
  for (int i = 0; i < 20; ++i) product += (i ? "*(" : "(") + sum + ")";
  EXPECT_TRUE(read(product).starts_with("$computed"));
}

}  // namespace
}  // namespace ingot::core::pt2
