// SPDX-License-Identifier: Apache-2.0
#include "types/dim.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/error.h"

namespace ingot::core {
namespace {

// The canonical text of an expression.
std::string canonical(std::string_view text) { return parse_dim(text).to_string(); }

TEST(Dim, ConstantsFold) {
  EXPECT_EQ(Dim(3) * 4 + 5 - 1, Dim(16));
  EXPECT_EQ(floor_divide(-7, 2), Dim(-4));
  EXPECT_EQ(modulo(-7, 2), Dim(1));
  EXPECT_EQ(modulo(7, -2), Dim(-1));
  EXPECT_EQ(ceil_divide(7, 2), Dim(4));
  EXPECT_EQ(maximum(3, 8), Dim(8));
  EXPECT_EQ(minimum(3, 8), Dim(3));
  EXPECT_TRUE(Dim().is_constant());
}

TEST(Dim, SumsAndProductsHaveOneForm) {
  EXPECT_EQ(canonical("T + S + 1 - T"), "S + 1");
  EXPECT_EQ(canonical("(S + 1)*(T - 2)"), "S*T - 2*S + T - 2");
  EXPECT_EQ(canonical("S - S"), "0");
  EXPECT_EQ(canonical("-S"), "-S");
  EXPECT_EQ(canonical("3 - 2*S"), "-2*S + 3");
  EXPECT_EQ(canonical("T*S*2"), "2*S*T");
  EXPECT_EQ(canonical("0*S + 7"), "7");
}

TEST(Dim, DivisionSimplifies) {
  EXPECT_EQ(canonical("floordiv(S, 1)"), "S");
  EXPECT_EQ(canonical("floordiv(16*S + 15, 16)"), "S");
  EXPECT_EQ(canonical("floordiv(16*S + mod(T, 16), 16)"), "S");
  EXPECT_EQ(canonical("floordiv(16*S + T, 16)"), "S + floordiv(T, 16)");
  EXPECT_EQ(canonical("floordiv(S + 5, 2)"), "floordiv(S + 1, 2) + 2");
  EXPECT_EQ(canonical("floordiv(S*T, T)"), "S");
  EXPECT_EQ(canonical("floordiv(6*S, 4)"), "floordiv(3*S, 2)");
  EXPECT_EQ(canonical("floordiv(6*S + 1, 4)"), "floordiv(3*S, 2)");
  EXPECT_EQ(canonical("floordiv(floordiv(S, 4), 8)"), "floordiv(S, 32)");
  EXPECT_EQ(canonical("floordiv(floordiv(S, 4) + 3, 2)"), "floordiv(S + 4, 8) + 1");
  EXPECT_EQ(canonical("floordiv(4*S + 4, S + 1)"), "4");
  EXPECT_EQ(canonical("floordiv(S*T + T + S + 1, S + 1)"), "T + 1");
  EXPECT_EQ(canonical("floordiv(2*B*S, 2*B*T)"), "floordiv(S, T)");
  EXPECT_EQ(canonical("floordiv(S, -2)"), "floordiv(-S, 2)");
}

TEST(Dim, ModuloSimplifies) {
  EXPECT_EQ(canonical("mod(S, 1)"), "0");
  EXPECT_EQ(canonical("mod(16*S + 3, 16)"), "3");
  EXPECT_EQ(canonical("mod(16*S + T, 16)"), "mod(T, 16)");
  EXPECT_EQ(canonical("mod(mod(S, 32), 8)"), "mod(S, 8)");
  EXPECT_EQ(canonical("mod(mod(S, 8), 32)"), "mod(S, 8)");
  EXPECT_EQ(canonical("mod(4*S, 8)"), "4*mod(S, 2)");
  EXPECT_EQ(canonical("mod(4*S + 1, 8)"), "4*mod(S, 2) + 1");
  EXPECT_EQ(canonical("mod(B*S, S)"), "0");
}

TEST(Dim, SplittingAndJoiningGivesTheIndexBack) {
  EXPECT_EQ(canonical("16*floordiv(S, 16) + mod(S, 16)"), "S");
  EXPECT_EQ(canonical("mod(S, 16)*3 + 48*floordiv(S, 16) + T"), "3*S + T");
  EXPECT_EQ(canonical("T*floordiv(S, T) + mod(S, T)"), "S");
  EXPECT_EQ(canonical("8*floordiv(4*S + 1, 8) + mod(4*S + 1, 8)"), "4*S + 1");
}

TEST(Dim, ExtremaSimplify) {
  EXPECT_EQ(canonical("max(S, max(T, S), 3)"), "max(S, T, 3)");
  EXPECT_EQ(canonical("max(3, S, 8)"), "max(S, 8)");
  EXPECT_EQ(canonical("min(S, S + 1)"), "S");
  EXPECT_EQ(canonical("max(S, S + 1)"), "S + 1");
  EXPECT_EQ(canonical("max(mod(S, 4), 0)"), "mod(S, 4)");
  EXPECT_EQ(canonical("min(mod(S, 4), 3)"), "mod(S, 4)");
  EXPECT_EQ(canonical("min(max(S, 4), 3)"), "3");
  EXPECT_EQ(canonical("min(floordiv(S, 2), 9223372036854775807)"), "floordiv(S, 2)");
}

TEST(Dim, StructureIsOpenToVisitors) {
  const Dim sum = parse_dim("2*S*T + 1");
  ASSERT_EQ(sum.kind(), Dim::Kind::kAdd);
  ASSERT_EQ(sum.operands().size(), 2U);
  EXPECT_EQ(sum.operands()[1], Dim(1));
  EXPECT_EQ(sum.operands()[0].kind(), Dim::Kind::kMultiply);
  EXPECT_EQ(sum.operands()[0].operands()[0], Dim(2));
  EXPECT_EQ(sum.operands()[0].operands()[1].symbol_name(), "S");
  EXPECT_EQ(sum.symbols(), (std::vector<std::string>{"S", "T"}));
}

TEST(Dim, SubstitutesAllAtOnce) {
  const std::map<std::string, Dim> swap = {{"S", Dim::symbol("T")}, {"T", Dim::symbol("S")}};
  EXPECT_EQ(substitute(parse_dim("floordiv(S, 2) + max(T, 4)*S"), swap),
            parse_dim("floordiv(T, 2) + max(S, 4)*T"));
  EXPECT_EQ(substitute(parse_dim("mod(S, T) - min(S, T)"), {{"S", 7}, {"T", 4}}), Dim(-1));
}

TEST(Dim, EvaluatesAndNamesWhatIsUnbound) {
  EXPECT_EQ(evaluate(parse_dim("floordiv(S + 3, 4) - mod(T, 5)"), {{"S", -8}, {"T", 9}}), -6);
  try {
    evaluate(Dim::symbol("batch"), {});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(error.details().message.find("'batch'"), std::string::npos);
  }
}

TEST(Dim, OverflowIsAnErrorAndNeverWraps) {
  EXPECT_THROW(Dim(INT64_MAX) + 1, UserError);
  EXPECT_THROW(Dim(INT64_MIN) - 1, UserError);
  EXPECT_THROW(Dim(INT64_MAX) * 2, UserError);
  EXPECT_THROW(floor_divide(INT64_MIN, -1), UserError);
  EXPECT_THROW(Dim::symbol("S") * INT64_MAX * 2, UserError);
  EXPECT_THROW(evaluate(parse_dim("S*S"), {{"S", INT64_MAX}}), UserError);
  EXPECT_EQ(modulo(INT64_MIN, -1), Dim(0));
}

TEST(Dim, TheLeastNumberHasDivisorsToo) {
  const Dim s = Dim::symbol("S"), least = INT64_MIN;
  EXPECT_EQ(floor_divide(least * s, 6), floor_divide(Dim(INT64_MIN / 2) * s, 3));
  EXPECT_EQ(floor_divide(floor_divide(s, 2) + least, 2).to_string(), "floordiv(S, 4) - 4611686018427387904");
  EXPECT_THROW(floor_divide(least * s + least, least * s + s), UserError);
  EXPECT_THROW(floor_divide(least * s + 1, Dim(-1) * s + 1), UserError);
}

TEST(Dim, DivisionByZeroIsAnError) {
  EXPECT_THROW(floor_divide(7, 0), UserError);
  EXPECT_THROW(modulo(Dim::symbol("S"), 0), UserError);
  EXPECT_THROW(evaluate(parse_dim("floordiv(S, T)"), {{"S", 1}, {"T", 0}}), UserError);
}

TEST(Dim, LongProductsAreRefused) {
  Dim sum = 1;
  for (int i = 0; i < 80; ++i) sum = sum + Dim::symbol("s" + std::to_string(i));
  EXPECT_THROW(sum * sum, UnsupportedError);
}

TEST(Dim, RangesFollowTheSymbols) {
  const SymbolTable symbols = {{"S", {{1, 256}, {}, {}}}, {"B", {{1, 16}, {}, {}}}, {"N", {}}};
  const auto range = [&](std::string_view text) { return range_of(parse_dim(text), symbols); };
  EXPECT_EQ(range("B*S + 1"), (DimRange{2, 4097}));
  EXPECT_EQ(range("B - S"), (DimRange{-255, 15}));
  EXPECT_EQ(range("floordiv(S + 15, 16)"), (DimRange{1, 16}));
  EXPECT_EQ(range("mod(S, 16)"), (DimRange{0, 15}));
  EXPECT_EQ(range("mod(B, 100)"), (DimRange{1, 16}));
  EXPECT_EQ(range("max(S, 32)"), (DimRange{32, 256}));
  EXPECT_EQ(range("min(N, 32)"), (DimRange{0, 32}));
  EXPECT_EQ(range("N*S"), (DimRange{0, INT64_MAX}));
  EXPECT_EQ(range("floordiv(S, N)"), (DimRange{0, 256}));
  EXPECT_EQ(range("-N"), (DimRange{INT64_MIN, 0}));
  EXPECT_EQ(range("unknown"), (DimRange{INT64_MIN, INT64_MAX}));
}

TEST(Dim, ProvesWhatHoldsForAllValues) {
  const SymbolTable symbols = {{"S", {{1, 256}, {}, {}}}, {"B", {{1, 16}, {}, {}}}};
  const auto less = [&](std::string_view a, std::string_view b) {
    return provably_less(parse_dim(a), parse_dim(b), symbols);
  };
  EXPECT_TRUE(less("S", "S + 1"));
  EXPECT_TRUE(less("S", "257"));
  EXPECT_FALSE(less("S", "256"));
  EXPECT_TRUE(less("mod(S, 16)", "16"));
  EXPECT_TRUE(less("S", "S + B"));
  EXPECT_FALSE(less("S", "B"));
  EXPECT_TRUE(less("S - 2", "9223372036854775807"));
  EXPECT_TRUE(provably_equal(parse_dim("S + S"), parse_dim("2*S"), symbols));
  EXPECT_TRUE(provably_equal(parse_dim("floordiv(S, 257)"), 0, symbols));
  EXPECT_FALSE(provably_equal(parse_dim("floordiv(S, 256)"), 0, symbols));
}

// 30 rows of four ranks: where each begins, and how many it has, are values of the same rank.
TEST(Dim, RankSymbolsHaveTheValuesOfOneRankTogether) {
  const auto of_ranks = [](std::vector<int64_t> sizes, const std::string& group = "tp") {
    const DimRange range{std::ranges::min(sizes), std::ranges::max(sizes)};
    const RankSizes table{.axes = {{group, static_cast<int64_t>(sizes.size())}}, .sizes = std::move(sizes)};
    return SymbolInfo{.range = range, .typical = {}, .upper_bound = {}, .by_rank = table};
  };
  const SymbolTable symbols = {{"first", of_ranks({0, 8, 16, 23})},
                               {"rows", of_ranks({8, 8, 7, 7})},
                               {"other", of_ranks({1, 5}, "dp")},
                               {"B", {.range = {1, 4}}}};
  const auto range = [&](std::string_view text) { return range_of(parse_dim(text), symbols); };
  EXPECT_EQ(range("first"), (DimRange{0, 23}));
  EXPECT_EQ(range("first + rows"), (DimRange{8, 30}));
  EXPECT_EQ(range("min(first + rows, 30) - first - rows"), (DimRange{0, 0}));
  EXPECT_TRUE(provably_equal(parse_dim("min(first + rows, 30) - first"), parse_dim("rows"), symbols));
  EXPECT_TRUE(provably_less(parse_dim("first + rows"), 31, symbols));
  EXPECT_FALSE(provably_less(parse_dim("first + rows"), 30, symbols));
  EXPECT_EQ(range("first + rows + other"), (DimRange{9, 35}));
  EXPECT_EQ(range("first + B*rows"), (DimRange{8, 51}));
}

TEST(Dim, MalformedTextShowsThePlace) {
  for (const char* text : {"", "S +", "S T", "floordiv(S)", "pow(S, 2)", "(S", "S)", "max(",
                           "99999999999999999999", "1.5", "S..*", "-", "floordiv(S, 2, 3)", "max(S,)"}) {
    EXPECT_THROW(parse_dim(text), UserError) << text;
  }
  try {
    parse_dim("S + ?");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(error.details().message.find("column 5"), std::string::npos) << error.what();
  }
  EXPECT_THROW(parse_dim(std::string(100000, '(')), UserError);
  EXPECT_EQ(parse_dim("-9223372036854775808"), Dim(INT64_MIN));
  EXPECT_THROW(parse_dim("9223372036854775808"), UserError);
  EXPECT_THROW(Dim::symbol("2S"), UserError);
}

TEST(Dim, ProductsThatGrowExponentiallyAreRefused) {
  const auto squared = [](Dim size) {
    for (int i = 0; i < 60; ++i) size = size * size;
  };
  EXPECT_THROW(squared(Dim::symbol("S")), UnsupportedError);
  EXPECT_THROW(squared(Dim::symbol("S") + 1), UnsupportedError);
}

}  // namespace
}  // namespace ingot::core
