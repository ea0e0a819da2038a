// SPDX-License-Identifier: Apache-2.0
// Denormals are numbers, in operands and in results, of every dtype: nothing flushes them to zero.
#include <gtest/gtest.h>

#include <xmmintrin.h>

#include "loops/interpreter.h"
#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/backends/cpu/compile/special_values.h"
#include "tests/loops/kernels.h"

namespace ingot::core::cpu {
namespace {

using loops::Access;
using loops::Binary;
using loops::Expr;
using loops::Unary;
using loops::test::buffer;
using loops::test::symbol;

class Denormals : public ::testing::TestWithParam<DType> {};

// Operations that are rounded correctly, so that the interpreter's result is the only one.
std::vector<Expr> exact_operations(const Expr& x, const Expr& y) {
  std::vector<Expr> values;
  for (const Binary op : {Binary::kAdd, Binary::kSubtract, Binary::kMultiply, Binary::kDivide,
                          Binary::kMaximum, Binary::kMinimum})
    values.push_back(binary(op, x, y));
  for (const Unary op : {Unary::kNegate, Unary::kAbsolute, Unary::kSquareRoot, Unary::kCeil, Unary::kFloor})
    values.push_back(unary(op, x));
  values.push_back(fma(x, loops::constant(x->dtype, 0.5), y));
  values.push_back(convert(DType::kF32, convert(DType::kF64, x)));
  return values;
}

TEST_P(Denormals, KeepTheirValues) {
  const int64_t count = test::special_pairs(GetParam());
  const Tensor x = test::special_tensor(GetParam(), {count}, 0),
               y = test::special_tensor(GetParam(), {count}, 1);
  const auto load = [&](int number) { return loops::load(number, GetParam(), {symbol("i")}); };
  for (const Expr& value : exact_operations(load(0), load(1))) {
    loops::Kernel kernel{.name = "exact", .parallel = {{"i", count}}};
    const DType stored = value->dtype == loops::arithmetic_dtype(GetParam()) ? GetParam() : value->dtype;
    kernel.buffers = {buffer("x", GetParam(), {count}), buffer("y", GetParam(), {count}),
                      buffer("z", stored, {count}, Access::kWrite)};
    kernel.stages = {{.name = "z", .value = value, .store = loops::Store{2, {symbol("i")}}}};
    const Tensor expected = make_tensor(stored, {count});
    const std::vector<TensorView> views{x.view(), y.view(), expected.view()};
    ASSERT_EQ(interpret(kernel, views, {}), loops::KernelStatus::kOk);
    for (const CpuFeatures features : test::targets()) {
      const Tensor got = make_tensor(stored, {count});
      const unsigned before = _mm_getcsr();
      ASSERT_EQ(test::run_once(kernel, features, {x, y, got}), 0);
      const unsigned modes = 0xffc0;  // everything but the exception flags
      EXPECT_EQ(_mm_getcsr() & modes, before & modes) << "a kernel changed how the processor computes";
      EXPECT_EQ(test::first_difference(expected, got), "") << to_string(features) << "\n"
                                                           << to_string(kernel);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Denormals,
                         ::testing::Values(DType::kF32, DType::kF64, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace ingot::core::cpu
