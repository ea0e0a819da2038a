// SPDX-License-Identifier: Apache-2.0
#include "backends/fake/execute/parse_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/error.h"
#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::symbol;

void expect_same_text(const Kernel& kernel) {
  const std::string text = to_string(kernel);
  EXPECT_EQ(to_string(parse_kernel(text)), text);
}

std::string message_of(std::string_view text) {
  try {
    parse_kernel(text);
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code.substr(0, 8), "INGOT-U1");
    return error.details().message;
  }
  return "";
}

// A kernel of one stage that stores this value.
Kernel storing(const Expr& value) {
  Kernel kernel{.name = "k"};
  kernel.buffers = {test::buffer("x", value->dtype, {4}),
                    test::buffer("y", value->dtype, {4}, Access::kWrite)};
  kernel.parallel = {{"$d0", 4}};
  kernel.stages = {{.name = "y", .value = value, .store = Store{1, {symbol("$d0")}}}};
  return kernel;
}

TEST(ParseKernel, ReadsWhatIsPrinted) {
  Kernel softmax = test::softmax_kernel(symbol("B"), symbol("S"), DType::kBF16);
  softmax.symbols["B"] = {.range = {1, 16}};
  softmax.symbols["S"] = {.range = {INT64_MIN, INT64_MAX}};
  expect_same_text(softmax);
  softmax.symbols.erase("S");
  expect_same_text(softmax);
  expect_same_text(test::unary_kernel(Unary::kNegate, DType::kI16, {3, symbol("N")}));
  expect_same_text(test::unary_kernel(Unary::kNegate, DType::kI16, {}));
}

TEST(ParseKernel, ReadsConstantsExactly) {
  const double pi = 3.141592653589793, infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.0, 1.0, pi, -1e-42, 1e30, infinity, -infinity}) {
    for (const DType dtype : {DType::kF32, DType::kF64}) {
      const Kernel read = parse_kernel(to_string(storing(constant(dtype, value))));
      const ExprNode& node = *read.stages[0].value;
      EXPECT_EQ(node.dtype, dtype);
      EXPECT_EQ(node.number, constant(dtype, value)->number);
      EXPECT_EQ(std::signbit(node.number), std::signbit(value));
    }
  }
  EXPECT_TRUE(
      std::isnan(parse_kernel(to_string(storing(constant(DType::kF32, NAN)))).stages[0].value->number));
  for (const DType dtype : {DType::kI64, DType::kU64, DType::kI8, DType::kU8, DType::kBool}) {
    for (const int64_t value : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1}, INT64_MAX}) {
      const Kernel read = parse_kernel(to_string(storing(integer_constant(dtype, value))));
      EXPECT_EQ(read.stages[0].value->dtype, dtype);
      EXPECT_EQ(read.stages[0].value->integer, integer_constant(dtype, value)->integer);
    }
  }
}

TEST(ParseKernel, KeepsSharing) {
  Kernel kernel = test::unary_kernel(Unary::kAbsolute, DType::kF32, {4});
  const Expr shared = kernel.stages[0].value;
  kernel.stages[0].value = binary(Binary::kMultiply, shared, unary(Unary::kNegate, shared));
  const Expr read = parse_kernel(to_string(kernel)).stages[0].value;
  EXPECT_EQ(read->operands[0], read->operands[1]->operands[0]);
}

TEST(ParseKernel, ReadsEveryOperator) {
  const Expr x = load(0, DType::kF32, {symbol("$d0")}), i = load(0, DType::kI32, {symbol("$d0")});
  for (const Function* function : all_functions()) expect_same_text(storing(call(*function, x)));
  for (int op = 0; op <= static_cast<int>(Unary::kRoundEven); ++op) {
    const auto unary_op = static_cast<Unary>(op);
    expect_same_text(storing(unary(unary_op, unary_op == Unary::kNot ? i : x)));
  }
  for (int op = 0; op <= static_cast<int>(Binary::kGreaterEqual); ++op) {
    const auto binary_op = static_cast<Binary>(op);
    const bool of_bits = binary_op >= Binary::kAnd && binary_op <= Binary::kShiftRight;
    const Expr a = of_bits ? i : x;
    const Expr result = binary(binary_op, a, a);
    expect_same_text(
        storing(select(result->dtype == DType::kBool ? result : integer_constant(DType::kBool, 1), a,
                       unary(Unary::kNegate, a))));
  }
  expect_same_text(storing(fma(x, x, bitcast(DType::kF32, convert(DType::kI32, x)))));
}

TEST(ParseKernel, ReadsScansBindingsAndMarks) {
  const std::string text =
      "kernel k(ids: i64[S], inout t: f32[V,2]{1, 0}, z: i4[4]) -> y: f32[S], in w: f64[] {\n"
      "  where S in .., V in 1..\n"
      "  parallel $i < min(S, V)\n"
      "  let %0 = (ids[$i] + 1)\n"
      "  let $k = (%0 * %0) in 0..V - 1\n"
      "  row s[j] = scan max j < 2, over n < floordiv(V + 3, 4) : f32((t[$k, j] < 2.5))\n"
      "  m = reduce add over n < 4 : z[n]\n"
      "  y[$i] = map : ((s[1] + f32(w[])) - f32(m))\n"
      "}\n";
  EXPECT_EQ(to_string(parse_kernel(text)), text);
}

TEST(ParseKernel, SaysWhereAndWhatIsWrong) {
  const std::string head = "kernel k(x: f32[4]) -> y: f32[4] {\n  parallel i < 4\n  y[i] = map : ";
  EXPECT_EQ(message_of(head + "exp(x[i])\n}\n"), "");
  EXPECT_EQ(message_of("graph k {}"), "1:1: expected 'kernel'");
  EXPECT_EQ(message_of(head + "ex(x[i])\n}\n"), "3:16: there is no function 'ex'");
  EXPECT_EQ(message_of(head + "z[i]\n}\n"), "3:16: there is no buffer or earlier row 'z'");
  EXPECT_EQ(message_of(head + "(x[i] + 1)\n}\n"), "3:16: operands of binary operation 0 are f32 and i64");
  EXPECT_EQ(message_of(head + "(x[i] ~ 1)\n}\n"), "3:22: expected an operator such as '+'");
  EXPECT_EQ(message_of(head + "1.0x\n}\n"),
            "3:16: '1.0x' is neither a constant nor the name of a row or scalar");
  EXPECT_EQ(message_of(head + "x[N]\n}\n"), "5:1: the symbol 'N' is not declared");
  EXPECT_EQ(message_of(head + "x[i, i]\n}\n"),
            "5:1: kernel 'k', stage 'y': the rank of a load of 'x' differs from the buffer's");
  EXPECT_EQ(message_of(head + "%0\n}\n"), "3:16: '%0' is not defined before");
  EXPECT_EQ(message_of("kernel k(x: f32[4], x: f32[4]) {\n}\n"), "1:22: the name 'x' is taken");
  EXPECT_EQ(message_of("kernel k(x: f99[4]) {\n}\n").substr(0, 5), "1:16:");
  EXPECT_THAT(message_of(head + std::string(5000, '(')), ::testing::HasSubstr("nested too deeply"));
  EXPECT_THAT(message_of(head + "x[i"), ::testing::StartsWith("3:19:"));
}

}  // namespace
}  // namespace ingot::core::loops
