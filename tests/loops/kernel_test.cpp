// SPDX-License-Identifier: Apache-2.0
#include "loops/kernel.h"

#include <gtest/gtest.h>

#include "support/error.h"
#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::symbol;

TEST(Kernel, PrintsStagesInOrder) {
  Kernel kernel = test::softmax_kernel(symbol("B"), 8);
  kernel.symbols["B"] = {.range = {1, 16}};
  EXPECT_EQ(to_string(kernel),
            "kernel softmax(x: f32[B,8]) -> y: f32[B,8] {\n"
            "  where B in 1..16\n"
            "  parallel i < B\n"
            "  m = reduce max over j < 8 : x[i, j]\n"
            "  row e[j] = map j < 8 : exp((x[i, j] - m))\n"
            "  t = reduce add over j < 8 : e[j]\n"
            "  y[i, j] = map j < 8 : (e[j] / t)\n"
            "}\n");
}

TEST(Kernel, TextShowsSharingAndConstantTypes) {
  Kernel kernel = test::unary_kernel(Unary::kAbsolute, DType::kF32, {4});
  const Expr shared = kernel.stages[0].value;
  kernel.stages[0].value =
      binary(Binary::kMultiply, shared, binary(Binary::kAdd, shared, constant(DType::kF32, 1)));
  EXPECT_NE(to_string(kernel).find("let %0 = abs(x[i0])\n  y[i0] = map : (%0 * (%0 + 1.0))"),
            std::string::npos)
      << to_string(kernel);
}

TEST(Kernel, FreeSymbolsAreSortedAndExcludeVariables) {
  const Kernel kernel = test::softmax_kernel(symbol("S"), symbol("B"));
  EXPECT_EQ(free_symbols(kernel), (std::vector<std::string>{"B", "S"}));
  EXPECT_EQ(parallel_extent(kernel), symbol("S"));
}

TEST(Kernel, VerifyAcceptsWhatTheTestsUse) {
  EXPECT_NO_THROW(verify(test::softmax_kernel(symbol("B"), 8)));
  EXPECT_NO_THROW(verify(test::unary_kernel(Unary::kNegate, DType::kI16, {3, symbol("N")})));
}

TEST(Kernel, VerifyRefusesWhatIsOutOfScope) {
  Kernel kernel = test::softmax_kernel(4, 8);
  kernel.stages[0].store = Store{1, {symbol("i"), symbol("j")}};  // j is reduced
  EXPECT_THROW(verify(kernel), InternalError);
}

TEST(Kernel, VerifyRefusesLocalsOfLaterStages) {
  Kernel kernel = test::softmax_kernel(4, 8);
  std::swap(kernel.stages[1], kernel.stages[2]);
  EXPECT_THROW(verify(kernel), InternalError);
}

TEST(Kernel, VerifyRefusesWrongRankAndWrites) {
  Kernel kernel = test::unary_kernel(Unary::kNegate, DType::kF32, {4});
  kernel.stages[0].store->index.push_back(0);
  EXPECT_THROW(verify(kernel), InternalError);
  kernel = test::unary_kernel(Unary::kNegate, DType::kF32, {4});
  kernel.buffers[1].access = Access::kRead;
  EXPECT_THROW(verify(kernel), InternalError);
}

TEST(Kernel, BuildersRefuseMixedDtypes) {
  EXPECT_THROW(binary(Binary::kAdd, constant(DType::kF32, 1), constant(DType::kF64, 1)), InternalError);
  EXPECT_THROW(select(constant(DType::kF32, 1), constant(DType::kF32, 1), constant(DType::kF32, 1)),
               InternalError);
}

}  // namespace
}  // namespace ingot::core::loops
