// SPDX-License-Identifier: Apache-2.0
#include "routines/matrix_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace ingot::core::routines {
namespace {

struct Sizes {
  int64_t rows, columns, depth;
};

std::vector<double> random_elements(int64_t count, std::mt19937& random) {
  std::vector<double> elements(static_cast<size_t>(count));
  for (double& element : elements) element = std::uniform_real_distribution(-1.0, 1.0)(random);
  return elements;
}

// A factor of `rows` x `columns` in `data`, whose lines are 3 elements longer than they have to be.
MatrixFactor factor_in(const std::vector<double>& data, int64_t rows, int64_t columns, bool by_rows) {
  return by_rows ? MatrixFactor{data.data(), columns + 3, 1} : MatrixFactor{data.data(), 1, rows + 3};
}

void expect_product(const Sizes& sizes, bool a_by_rows, bool b_by_rows, double alpha) {
  std::mt19937 random(5);
  const auto [rows, columns, depth] = sizes;
  const auto a_data = random_elements((rows + 3) * (depth + 3), random),
             b_data = random_elements((depth + 3) * (columns + 3), random);
  const int64_t stride = rows + 2;
  const auto given = random_elements(stride * columns, random);
  auto result = given;
  const MatrixFactor a = factor_in(a_data, rows, depth, a_by_rows),
                     b = factor_in(b_data, depth, columns, b_by_rows);
  add_matrix_product({rows, columns, depth, alpha, a, b, result.data(), 1, stride});
  for (int64_t j = 0; j < columns; ++j) {
    for (int64_t i = 0; i < stride; ++i) {
      const auto at = static_cast<size_t>(j * stride + i);
      double expected = given[at], size = std::abs(expected);
      for (int64_t k = 0; k < depth && i < rows; ++k) {
        const double term = alpha * a.data[i * a.row + k * a.column] * b.data[k * b.row + j * b.column];
        expected += term;
        size += std::abs(term);
      }
      ASSERT_NEAR(result[at], expected, size * 1e-14)
          << rows << " x " << columns << " x " << depth << ": " << i << ", " << j;
    }
  }
}

// One fewer and one more than microkernels have rows and columns, and than the blocks that are copied.
TEST(MatrixProducts, HaveAllSizes) {
  for (const Sizes& sizes : {Sizes{0, 3, 4},
                             {3, 0, 4},
                             {3, 4, 0},
                             {1, 1, 1},
                             {23, 7, 5},
                             {25, 9, 40},
                             {12, 4, 6},
                             {48, 16, 17},
                             {241, 33, 12},
                             {30, 961, 3},
                             {26, 10, 257},
                             {250, 970, 2}}) {
    for (const bool a_by_rows : {false, true}) {
      for (const bool b_by_rows : {false, true}) {
        for (const double alpha : {1.0, -1.0, 0.3}) expect_product(sizes, a_by_rows, b_by_rows, alpha);
      }
    }
  }
}

// What an edge is filled up with must not reach the result.
TEST(MatrixProducts, KeepInfinitiesInTheirRowsAndColumns) {
  constexpr int64_t kSize = 29;
  std::vector<double> a(kSize * kSize, 1.0), b(kSize * kSize, 1.0), c(kSize * kSize, 0.0);
  a[28] = INFINITY;               // row 28, depth 0
  b[28 * kSize + 1] = -INFINITY;  // depth 1, column 28
  add_matrix_product(
      {kSize, kSize, kSize, 1, {a.data(), 1, kSize}, {b.data(), 1, kSize}, c.data(), 1, kSize});
  for (int64_t j = 0; j < kSize; ++j) {
    for (int64_t i = 0; i < kSize; ++i) {
      const double sum = c[static_cast<size_t>(j * kSize + i)];
      const double expected = i == 28 ? INFINITY : j == 28 ? -INFINITY : double{kSize};
      EXPECT_TRUE(i == 28 && j == 28 ? std::isnan(sum) : sum == expected) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace ingot::core::routines
