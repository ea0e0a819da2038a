// SPDX-License-Identifier: Apache-2.0
// Indices that are divided by indices of any sign. Zero does not trap, and the other results stay right.
#include <gtest/gtest.h>

#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/loops/kernels.h"
#include "types/checked_arithmetic.h"

namespace ingot::core::cpu {
namespace {

using loops::test::buffer;
using loops::test::symbol;

constexpr int64_t kCount = 40, kLeast = -20;

// y[i] = dividend // (i - 20), z[i] = dividend % (i - 20)
loops::Kernel divisions(const Dim& dividend) {
  const Dim i = symbol("i"), divisor = i + Dim(kLeast);
  loops::Kernel kernel{.name = "divisions", .parallel = {{"i", kCount}}};
  kernel.buffers = {buffer("y", DType::kI64, {kCount}, loops::Access::kWrite),
                    buffer("z", DType::kI64, {kCount}, loops::Access::kWrite)};
  kernel.stages = {
      {.name = "y",
       .value = loops::index_value(floor_divide(dividend, divisor)),
       .store = loops::Store{0, {i}}},
      {.name = "z", .value = loops::index_value(modulo(dividend, divisor)), .store = loops::Store{1, {i}}}};
  return kernel;
}

TEST(IndexDivision, OfAnySign) {
  for (const int64_t dividend : {int64_t{100}, int64_t{-100}, int64_t{7}, int64_t{0}, INT64_MAX, INT64_MIN}) {
    const loops::Kernel kernel = divisions(dividend);
    for (const CpuFeatures features : test::targets()) {
      const std::vector<Tensor> made = {make_tensor(DType::kI64, {kCount}),
                                        make_tensor(DType::kI64, {kCount})};
      ASSERT_EQ(test::run_once(kernel, features, made), 0);
      for (int64_t i = 0; i < kCount; ++i) {
        const int64_t divisor = i + kLeast;
        if (divisor == 0 || (divisor == -1 && dividend == INT64_MIN)) continue;
        EXPECT_EQ(read_integer(made[0].view(), {&i, 1}), checked_floor_divide(dividend, divisor)) << divisor;
        EXPECT_EQ(read_integer(made[1].view(), {&i, 1}), checked_modulo(dividend, divisor)) << divisor;
      }
    }
  }
}

TEST(IndexDivision, OfSymbolsOfAnySign) {
  loops::Kernel kernel = divisions(symbol("N"));
  kernel.parallel[0].extent = -kLeast;
  kernel.symbols["N"].range = {INT64_MIN, INT64_MAX};
  for (const int64_t n : {100, -100, 7, 0}) test::expect_same(kernel, {{"N", n}});
}

}  // namespace
}  // namespace ingot::core::cpu
