// SPDX-License-Identifier: Apache-2.0
// Random expressions: whatever form a dim takes, its value is that of the expression as it was written.
#include <cstdint>
#include <optional>
#include <random>

#include <gtest/gtest.h>

#include "support/error.h"
#include "types/dim.h"

namespace ingot::core {
namespace {

constexpr int kSymbols = 3;

// A dim and its value by plain arithmetic for each of the sample points; nothing where that
// divides by zero.
struct Sample {
  Dim dim;
  std::vector<std::optional<int64_t>> values;
  std::string written;
};

int64_t floor_quotient(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient * b != a && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

class RandomDims {
 public:
  explicit RandomDims(unsigned seed) : random_(seed) {
    for (int i = 0; i < 24; ++i) {
      SymbolValues point;
      for (int s = 0; s < kSymbols; ++s) point["s" + std::to_string(s)] = uniform(-9, 20);
      points_.push_back(point);
    }
  }

  Sample make(int depth) {
    if (depth == 0 || uniform(0, 5) == 0) return uniform(0, 1) == 0 ? constant() : symbol();
    const Sample a = make(depth - 1);
    const Sample b = make(depth - 1);
    switch (uniform(0, 6)) {
      case 0:
        return combine(a, b, a.dim + b.dim, '+', [](int64_t x, int64_t y) { return x + y; });
      case 1:
        return combine(a, b, a.dim - b.dim, '-', [](int64_t x, int64_t y) { return x - y; });
      case 2:
        return combine(a, b, a.dim * b.dim, '*', [](int64_t x, int64_t y) { return x * y; });
      case 3:
        return divide(a, b);
      case 4:
        return take_modulo(a, b);
      case 5:
        return combine(a, b, maximum(a.dim, b.dim), '>', [](int64_t x, int64_t y) { return std::max(x, y); });
      default:
        return combine(a, b, minimum(a.dim, b.dim), '<', [](int64_t x, int64_t y) { return std::min(x, y); });
    }
  }

  const std::vector<SymbolValues>& points() const { return points_; }

 private:
  int64_t uniform(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random_);
  }

  Sample constant() {
    const int64_t value = uniform(-8, 16);
    return {value, std::vector<std::optional<int64_t>>(points_.size(), value), std::to_string(value)};
  }

  Sample symbol() {
    const std::string name = "s" + std::to_string(uniform(0, kSymbols - 1));
    Sample result{Dim::symbol(name), {}, name};
    for (const SymbolValues& point : points_) result.values.emplace_back(point.at(name));
    return result;
  }

  template <typename Operation>
  static Sample combine(const Sample& a, const Sample& b, Dim dim, char symbol, Operation operation) {
    Sample result{std::move(dim), {}, "(" + a.written + " " + symbol + " " + b.written + ")"};
    for (size_t i = 0; i < a.values.size(); ++i) {
      const bool known = a.values[i] && b.values[i];
      result.values.push_back(known ? std::optional<int64_t>(operation(*a.values[i], *b.values[i]))
                                    : std::nullopt);
    }
    return result;
  }

  // A divisor that is zero at some point leaves that point out.
  static Sample without_zeros(Sample b) {
    for (auto& value : b.values) {
      if (value == 0) value = std::nullopt;
    }
    return b;
  }

  static Sample divide(const Sample& a, const Sample& b) {
    if (b.dim == Dim(0)) return a;
    return combine(a, without_zeros(b), floor_divide(a.dim, b.dim), '/', floor_quotient);
  }

  static Sample take_modulo(const Sample& a, const Sample& b) {
    if (b.dim == Dim(0)) return a;
    return combine(a, without_zeros(b), modulo(a.dim, b.dim), '%',
                   [](int64_t x, int64_t y) { return x - y * floor_quotient(x, y); });
  }

  std::mt19937 random_;
  std::vector<SymbolValues> points_;
};

SymbolTable bounds_of(const std::vector<SymbolValues>& points) {
  SymbolTable table;
  for (const auto& [name, value] : points[0]) {
    DimRange range{value, value};
    for (const SymbolValues& point : points) {
      range = {std::min(range.min, point.at(name)), std::max(range.max, point.at(name))};
    }
    table[name] = {range, {}, {}};
  }
  return table;
}

void check(const Sample& sample, const RandomDims& dims) {
  const std::string text = sample.dim.to_string();
  EXPECT_EQ(parse_dim(text), sample.dim) << text;
  EXPECT_EQ(parse_dim(text).hash(), sample.dim.hash()) << text;
  EXPECT_EQ(substitute(sample.dim, {}), sample.dim) << text;
  const DimRange range = range_of(sample.dim, bounds_of(dims.points()));
  for (size_t i = 0; i < sample.values.size(); ++i) {
    if (!sample.values[i]) continue;
    EXPECT_EQ(evaluate(sample.dim, dims.points()[i]), *sample.values[i])
        << text << " from " << sample.written;
    EXPECT_LE(range.min, *sample.values[i]) << text;
    EXPECT_GE(range.max, *sample.values[i]) << text;
  }
}

TEST(DimProperties, ValueTextAndRangeOfRandomExpressions) {
  for (unsigned seed = 0; seed < 4000 && !testing::Test::HasFailure(); ++seed) {
    RandomDims dims(seed);
    check(dims.make(4), dims);
  }
}

TEST(DimProperties, OrderIsTotal) {
  RandomDims random(7);
  std::vector<Dim> dims;
  for (int i = 0; i < 60; ++i) dims.push_back(random.make(3).dim);
  for (const Dim& a : dims) {
    for (const Dim& b : dims) {
      EXPECT_EQ(a == b, (a <=> b) == 0);
      EXPECT_EQ(a<b, b> a);
      for (const Dim& c : dims) {
        if (a < b && b < c) {
          EXPECT_LT(a, c);
        }
      }
    }
  }
}

TEST(DimProperties, SumsAndProductsOfTheSameTermsAreEqual) {
  for (unsigned seed = 0; seed < 500; ++seed) {
    RandomDims random(seed);
    const Dim a = random.make(2).dim;
    const Dim b = random.make(2).dim;
    const Dim c = random.make(2).dim;
    EXPECT_EQ(a + b, b + a);
    EXPECT_EQ(a * b, b * a);
    EXPECT_EQ((a + b) + c, a + (b + c)) << a.to_string() << " | " << b.to_string() << " | " << c.to_string();
    EXPECT_EQ(a - a, Dim(0));
    EXPECT_EQ(maximum(a, b), maximum(b, a));
  }
}

}  // namespace
}  // namespace ingot::core
