// SPDX-License-Identifier: Apache-2.0
#include "loops/count_operations.h"

#include <gtest/gtest.h>

#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using namespace test;

TEST(CountOperations, CountsEachStageAtItsPoints) {
  const Dim rows = symbol("R"), columns = symbol("C");
  // max: 1 per element; exp(x - m): 2; sum: 1; divide: 1
  EXPECT_EQ(count_operations(softmax_kernel(rows, columns)), Dim(5) * rows * columns);
}

TEST(CountOperations, CountsSharedSubexpressionsOnceAndConditionsNever) {
  Kernel kernel = function_kernel(functions::exp, DType::kF32, {Dim(8)});
  const Expr power = kernel.stages[0].value;
  const Expr is_less = binary(Binary::kLess, power, power), is_equal = binary(Binary::kEqual, power, power);
  kernel.stages[0].value =
      select(binary(Binary::kAnd, is_less, is_equal), binary(Binary::kAdd, power, power), power);
  EXPECT_EQ(count_operations(kernel), Dim(16));
}

TEST(CountOperations, CountsLoadsAndStoresPerBuffer) {
  const Kernel kernel = softmax_kernel(4, 8);
  EXPECT_EQ(count_loads(kernel, 0), Dim(2 * 4 * 8));  // for the maximum and for the exponentials
  EXPECT_EQ(count_loads(kernel, 1), Dim(0));
  EXPECT_EQ(count_stores(kernel, 0), Dim(0));
  EXPECT_EQ(count_stores(kernel, 1), Dim(4 * 8));
}

}  // namespace
}  // namespace ingot::core::loops
