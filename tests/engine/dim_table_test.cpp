// SPDX-License-Identifier: Apache-2.0
#include "engine/dim_table.h"

#include <gtest/gtest.h>

#include <random>

#include "support/error.h"

namespace ingot::core {
namespace {

Dim random_dim(std::mt19937& random, int depth) {
  const char* names[] = {"A", "B", "C"};
  if (depth == 0)
    return random() % 2 ? Dim(static_cast<int64_t>(random() % 7) + 1) : Dim::symbol(names[random() % 3]);
  const Dim a = random_dim(random, depth - 1);
  const Dim b = random_dim(random, depth - 1);
  switch (random() % 6) {
    case 0:
      return a + b;
    case 1:
      return a * b;
    case 2:
      return floor_divide(a, b + Dim(1));
    case 3:
      return modulo(a, b + Dim(1));
    case 4:
      return maximum(a, b);
    default:
      return minimum(a, b);
  }
}

TEST(DimTable, EvaluatesAsDimsDoAndReadsItsOwnCode) {
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    const Dim dim = random_dim(random, 3);
    DimTable table;
    const uint32_t slot = table.add(dim);
    EXPECT_EQ(table.add(dim), slot);
    EXPECT_EQ(read_postfix(table.code(slot), table.symbols()), dim) << dim.to_string();
    SymbolValues values;
    std::vector<int64_t> numbers;
    for (const std::string& symbol : table.symbols())
      numbers.push_back(values[symbol] = static_cast<int64_t>(random() % 50));
    EXPECT_EQ(table.evaluate(slot, numbers), evaluate(dim, values)) << dim.to_string();
  }
}

TEST(DimTable, ReportsOverflowAndDivisionByZero) {
  DimTable table;
  const uint32_t square = table.add(Dim::symbol("A") * Dim::symbol("A"));
  const uint32_t quotient = table.add(floor_divide(Dim(7), Dim::symbol("A")));
  const uint32_t rest = table.add(modulo(Dim::symbol("A"), Dim(3)));
  const std::vector<int64_t> large = {INT64_MAX}, zero = {0}, least = {INT64_MIN};
  EXPECT_EQ(table.evaluate(rest, least), 1);
  EXPECT_THROW(table.evaluate(square, large), UserError);
  EXPECT_THROW(table.evaluate(quotient, zero), UserError);
}

TEST(ReadPostfix, RefusesMalformedCode) {
  using enum PostfixOp;
  const std::vector<std::string> symbols = {"A"};
  const std::vector<std::vector<PostfixItem>> bad = {
      {},
      {{kAdd}},
      {{kConstant, 1}, {kAdd}},
      {{kConstant, 1}, {kConstant, 2}},
      {{kSymbol, 1}},
      {{kSymbol, -1}},
      {{kConstant, 1}, {kConstant, 1}, {static_cast<PostfixOp>(9)}},
  };
  for (const auto& code : bad) EXPECT_THROW(read_postfix(code, symbols), UserError);
}

TEST(ReadPostfix, BoundsDepthAndLength) {
  const std::vector<std::string> symbols = {"A"};
  std::vector<PostfixItem> deep = {{PostfixOp::kSymbol, 0}};
  for (int i = 0; i < 100; ++i) {
    deep.push_back({PostfixOp::kConstant, 3});
    deep.push_back({i % 2 ? PostfixOp::kMaximum : PostfixOp::kFloorDivide});
  }
  EXPECT_THROW(read_postfix(deep, symbols), UserError);
  const std::vector<PostfixItem> wide(100'000, {PostfixOp::kConstant, 1});
  EXPECT_THROW(read_postfix(wide, symbols), UserError);
}

}  // namespace
}  // namespace ingot::core
