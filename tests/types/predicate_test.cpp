// SPDX-License-Identifier: Apache-2.0
#include "types/predicate.h"

#include <gtest/gtest.h>

#include <random>

#include "support/error.h"

namespace ingot::core {
namespace {

using Kind = Predicate::Kind;

class RandomPredicates {
 public:
  explicit RandomPredicates(unsigned seed) : random_(seed) {}

  int64_t uniform(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }
  Dim dim(int depth) {
    if (depth == 0 || uniform(0, 3) == 0)
      return uniform(0, 2) == 0 ? Dim(uniform(-3, 12)) : Dim::symbol(uniform(0, 1) == 0 ? "S" : "T");
    const Dim a = dim(depth - 1), b = dim(depth - 1);
    switch (uniform(0, 6)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return a * Dim(uniform(-2, 3));
      case 3:
        return floor_divide(a, uniform(1, 5));
      case 4:
        return modulo(a, uniform(1, 5));
      case 5:
        return maximum(a, b);
      default:
        return minimum(a, b);
    }
  }
  Predicate predicate(int depth) {
    if (depth == 0 || uniform(0, 2) == 0) return compare(static_cast<Kind>(uniform(0, 3)), dim(2), dim(2));
    const Predicate a = predicate(depth - 1), b = predicate(depth - 1);
    return uniform(0, 1) == 0 ? both(a, b) : either(a, b);
  }

 private:
  std::mt19937 random_;
};

const SymbolTable kRanges = {{"S", {.range = {0, 9}}}, {"T", {.range = {2, 7}}}};

template <typename Function>
void for_all_sizes(Function&& function) {
  for (int64_t s = 0; s <= 9; ++s) {
    for (int64_t t = 2; t <= 7; ++t) function(SymbolValues{{"S", s}, {"T", t}});
  }
}

TEST(Predicate, ReadsBackWhatItPrints) {
  RandomPredicates random(1);
  for (int i = 0; i < 500; ++i) {
    const Predicate predicate = random.predicate(3);
    EXPECT_EQ(parse_predicate(to_string(predicate)), predicate) << to_string(predicate);
  }
}

TEST(Predicate, OfTheOppositeHoldsWhereItDoesNot) {
  RandomPredicates random(2);
  for (int i = 0; i < 300; ++i) {
    const Predicate predicate = random.predicate(3), opposite = negation(predicate);
    for_all_sizes([&](const SymbolValues& sizes) {
      ASSERT_NE(evaluate(predicate, sizes), evaluate(opposite, sizes)) << to_string(predicate);
    });
  }
}

TEST(Predicate, ThatIsProvenHoldsForAllSizes) {
  RandomPredicates random(3);
  int proven = 0;
  for (int i = 0; i < 3000; ++i) {
    const Predicate predicate = random.predicate(2);
    if (!is_proven(predicate, kRanges)) continue;
    ++proven;
    for_all_sizes(
        [&](const SymbolValues& sizes) { ASSERT_TRUE(evaluate(predicate, sizes)) << to_string(predicate); });
  }
  EXPECT_GT(proven, 300);
}

TEST(Predicate, IsProvenWhereHalvesAndRoundedSizesStayInBounds) {
  for (const char* text : {"floordiv(S, 2) <= S", "S - floordiv(S, 2) <= S", "0 <= S - 4*floordiv(S, 4)",
                           "4*floordiv(S + 3, 4) <= S + 3", "S <= 4*floordiv(S + 3, 4)", "mod(S, 4) < 4",
                           "T != 1", "S < 10 & 2 <= T", "S < 0 | T < 8"})
    EXPECT_TRUE(is_proven(parse_predicate(text), kRanges)) << text;
  for (const char* text : {"S <= T", "T != 2", "floordiv(S, 2) < S", "mod(S, 2) == 0", "S < 9"})
    EXPECT_FALSE(is_proven(parse_predicate(text), kRanges)) << text;
}

TEST(Predicate, ReadsAsPython) {
  const auto name = [](const std::string& symbol) { return symbol == "S" ? "x.shape[0]" : "y.shape[1]"; };
  const std::pair<const char*, const char*> cases[] = {
      {"mod(S, 2) == 0", "x.shape[0] % 2 == 0"},
      {"20 < S*T", "x.shape[0]*y.shape[1] > 20"},
      {"T <= S & [S != 3 | 4 <= T]", "y.shape[1] <= x.shape[0] and (x.shape[0] != 3 or y.shape[1] >= 4)"},
      {"floordiv(S + 3, 4) < max(S, T)", "(x.shape[0] + 3) // 4 < max(x.shape[0], y.shape[1])"},
      {"mod(4 - mod(S, 4), 4) != 0", "(-x.shape[0]) % 4 != 0"}};
  for (const auto& [text, python] : cases) EXPECT_EQ(to_python(parse_predicate(text), name), python);
}

TEST(Predicate, RefusesWhatIsNone) {
  std::string deep(200, '[');
  for (const std::string& text : {std::string("S"), std::string("S <"), std::string("S < T <= 4"),
                                  std::string("[S < T"), std::string("S < T & "), std::string(), deep})
    EXPECT_THROW(parse_predicate(text), UserError) << text;
}

}  // namespace
}  // namespace ingot::core
