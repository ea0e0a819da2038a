// SPDX-License-Identifier: Apache-2.0
// Incomplete gamma functions, which are summed up by vectors of pairs: no pair changes another one's result.
#include "routines/incomplete_gamma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/special.h"

namespace ingot::core::routines {
namespace {

struct Pairs {
  std::vector<double> orders, arguments;
  void add(double order, double argument) {
    orders.push_back(order);
    arguments.push_back(argument);
  }
  std::vector<double> results(bool is_upper, double tolerance) const {
    std::vector<double> y(orders.size());
    incomplete_gammas(
        {orders.data(), arguments.data(), y.data(), static_cast<int64_t>(y.size()), is_upper, tolerance});
    return y;
  }
};

// Of all magnitudes, with arguments anywhere and beside the order, and all values at edges with each other.
Pairs pairs_of_all_kinds() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::mt19937 random(5);
  std::uniform_real_distribution<double> exponent(-12, 9), beside(-3, 3);
  Pairs pairs;
  for (int i = 0; i < 600; ++i) {
    const double a = std::pow(10, exponent(random));
    pairs.add(a, i % 2 == 0 ? std::pow(10, exponent(random)) : std::fabs(a + beside(random) * std::sqrt(a)));
  }
  const double edges[] = {0, -0.0, -1, 1e-300, 1, 1.1, 1e7, 1e300, kInfinity, -kInfinity, special::kNan};
  for (const double a : edges) {
    for (const double x : edges) pairs.add(a, x);
  }
  return pairs;
}

bool has_same_bits(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }

TEST(IncompleteGammas, DoNotDependOnOtherPairs) {
  const Pairs pairs = pairs_of_all_kinds();
  for (const bool is_upper : {false, true}) {
    for (const double tolerance : {special::kEpsilon, 0x1p-38}) {
      const std::vector<double> together = pairs.results(is_upper, tolerance);
      for (size_t i = 0; i < together.size(); ++i) {
        Pairs alone;
        alone.add(pairs.orders[i], pairs.arguments[i]);
        const double result = alone.results(is_upper, tolerance)[0];
        EXPECT_TRUE(has_same_bits(result, together[i]) || (std::isnan(result) && std::isnan(together[i])))
            << pairs.orders[i] << ' ' << pairs.arguments[i] << ": " << result << ' ' << together[i];
      }
    }
  }
}

TEST(IncompleteGammas, AddUpToOne) {
  const Pairs pairs = pairs_of_all_kinds();
  const std::vector<double> lower = pairs.results(false, special::kEpsilon),
                            upper = pairs.results(true, special::kEpsilon);
  for (size_t i = 0; i < lower.size(); ++i) {
    EXPECT_EQ(std::isnan(lower[i]), std::isnan(upper[i]));
    if (std::isnan(lower[i])) continue;
    EXPECT_NEAR(lower[i] + upper[i], 1, 1e-12) << pairs.orders[i] << ' ' << pairs.arguments[i];
  }
}

TEST(IncompleteGammas, TakeAnyNumberOfPairs) {
  for (size_t count = 0; count < 40; ++count) {
    Pairs pairs;
    for (size_t i = 0; i < count; ++i) pairs.add(1, static_cast<double>(i));
    const std::vector<double> y = pairs.results(true, special::kEpsilon);  // exp(-x)
    for (size_t i = 0; i < count; ++i)
      EXPECT_NEAR(y[i] / std::exp(-static_cast<double>(i)), 1, 1e-13) << i << " of " << count;
  }
}

}  // namespace
}  // namespace ingot::core::routines
