// SPDX-License-Identifier: Apache-2.0
#include "loops/interpreter.h"

#include <cmath>

#include <gtest/gtest.h>

#include "loops/scalar.h"
#include "support/error.h"
#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::buffer;
using test::symbol;

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  const TensorView flat{tensor.data.get(), tensor.dtype, {tensor.elements()}, {1}};
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    values.push_back(is_floating(tensor.dtype) ? read_double(flat, {&i, 1})
                                               : static_cast<double>(read_integer(flat, {&i, 1})));
  }
  return values;
}

TEST(Interpreter, RunsStagesAPointAtATime) {
  std::vector<Tensor> tensors = {test::tensor_of({0, 1, 2, 3, 3, 3}, {2, 3}),
                                 make_tensor(DType::kF32, {2, 3})};
  ASSERT_EQ(test::run(test::softmax_kernel(symbol("B"), symbol("C")), tensors, {{"B", 2}, {"C", 3}}),
            KernelStatus::kOk);
  const auto y = values_of(tensors[1]);
  const double total = 1 + std::exp(1) + std::exp(2);
  EXPECT_NEAR(y[0], 1 / total, 1e-7);
  EXPECT_NEAR(y[2], std::exp(2) / total, 1e-7);
  EXPECT_NEAR(y[4], 1 / 3.0, 1e-7);
}

TEST(Interpreter, AppliesLayouts) {
  Kernel kernel = test::unary_kernel(Unary::kNegate, DType::kF32, {2, 3});
  const int swapped[] = {1, 0};
  kernel.buffers[1].type.layout = Layout::permutation(swapped);
  std::vector<Tensor> tensors = {test::tensor_of({1, 2, 3, 4, 5, 6}, {2, 3}),
                                 make_tensor(DType::kF32, {3, 2})};
  test::run(kernel, tensors);
  EXPECT_EQ(values_of(tensors[1]), (std::vector<double>{-1, -4, -2, -5, -3, -6}));
}

TEST(Interpreter, ScansKeepTheRunningCombination) {
  const Dim i = symbol("i");
  Kernel kernel{.name = "scan",
                .buffers = {buffer("x", DType::kF32, {4}), buffer("y", DType::kF32, {4}, Access::kWrite)}};
  kernel.stages = {{.name = "y",
                    .loops = {{"i", 4}},
                    .combine = Combine::kAdd,
                    .scan = true,
                    .value = load(0, DType::kF32, {i}),
                    .store = Store{1, {i}}}};
  std::vector<Tensor> tensors = {test::tensor_of({1, 2, 3, 4}, {4}), make_tensor(DType::kF32, {4})};
  test::run(kernel, tensors);
  EXPECT_EQ(values_of(tensors[1]), (std::vector<double>{1, 3, 6, 10}));
}

Kernel lookup_kernel() {
  const Dim i = symbol("i"), j = symbol("j"), row = symbol("row");
  Kernel kernel{.name = "lookup"};
  kernel.buffers = {buffer("table", DType::kF32, {3, 2}), buffer("ids", DType::kI64, {2}),
                    buffer("y", DType::kF32, {2, 2}, Access::kWrite)};
  kernel.parallel = {{"i", 2}, {"j", 2}};
  kernel.stages = {{.name = "y",
                    .bindings = {{"row", load(1, DType::kI64, {i}), 3}},
                    .value = load(0, DType::kF32, {row, j}),
                    .store = Store{2, {i, j}}}};
  return kernel;
}

TEST(Interpreter, BindsIndicesFromData) {
  std::vector<Tensor> tensors = {test::tensor_of({1, 2, 3, 4, 5, 6}, {3, 2}), make_tensor(DType::kI64, {2}),
                                 make_tensor(DType::kF32, {2, 2})};
  reinterpret_cast<int64_t*>(tensors[1].data.get())[0] = 2;
  EXPECT_EQ(test::run(lookup_kernel(), tensors), KernelStatus::kOk);
  EXPECT_EQ(values_of(tensors[2]), (std::vector<double>{5, 6, 1, 2}));
  reinterpret_cast<int64_t*>(tensors[1].data.get())[1] = 3;
  EXPECT_EQ(test::run(lookup_kernel(), tensors), KernelStatus::kIndexOutOfRange);
}

TEST(Interpreter, SelectGuardsTheLoadOfTheOtherArm) {
  const Dim i = symbol("i");
  Kernel kernel{.name = "pad",
                .buffers = {buffer("x", DType::kF32, {2}), buffer("y", DType::kF32, {4}, Access::kWrite)}};
  kernel.parallel = {{"i", 4}};
  const Expr inside = binary(Binary::kLess, index_value(i), integer_constant(DType::kI64, 2));
  kernel.stages = {{.name = "y",
                    .value = select(inside, load(0, DType::kF32, {i}), constant(DType::kF32, 9)),
                    .store = Store{1, {i}}}};
  std::vector<Tensor> tensors = {test::tensor_of({1, 2}, {2}), make_tensor(DType::kF32, {4})};
  test::run(kernel, tensors);
  EXPECT_EQ(values_of(tensors[1]), (std::vector<double>{1, 2, 9, 9}));
  kernel.stages[0].value = load(0, DType::kF32, {i});
  EXPECT_THROW(test::run(kernel, tensors), InternalError);
}

int64_t integer_result(Binary op, DType dtype, int64_t a, int64_t b) {
  return apply(op, dtype, {.integer = a}, {.integer = b}).integer;
}

TEST(Scalar, IntegersWrapAndDivideAsStated) {
  EXPECT_EQ(integer_result(Binary::kAdd, DType::kI8, 127, 1), -128);
  EXPECT_EQ(integer_result(Binary::kDivide, DType::kI32, -7, 2), -3);
  EXPECT_EQ(integer_result(Binary::kFloorDivide, DType::kI32, -7, 2), -4);
  EXPECT_EQ(integer_result(Binary::kModulo, DType::kI32, -7, 2), 1);
  EXPECT_EQ(integer_result(Binary::kRemainder, DType::kI32, -7, 2), -1);
  EXPECT_EQ(integer_result(Binary::kDivide, DType::kI64, 5, 0), 0);
  EXPECT_EQ(integer_result(Binary::kDivide, DType::kI64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(integer_result(Binary::kModulo, DType::kI64, INT64_MIN, -1), 0);
  EXPECT_EQ(integer_result(Binary::kGreater, DType::kU64, -1, 1), 1);
  EXPECT_EQ(integer_result(Binary::kPower, DType::kI32, 3, 4), 81);
}

TEST(Scalar, FloatsFollowTorch) {
  const auto real = [](Binary op, double a, double b) {
    return apply(op, DType::kF32, {.number = a}, {.number = b}).number;
  };
  EXPECT_TRUE(std::isnan(real(Binary::kMaximum, NAN, 1)));
  EXPECT_TRUE(std::isnan(real(Binary::kMinimum, 1, NAN)));
  EXPECT_EQ(real(Binary::kModulo, -1, 3), 2);
  EXPECT_EQ(real(Binary::kFloorDivide, -1, 3), -1);
  EXPECT_EQ(real(Binary::kFloorDivide, 1, 0), INFINITY);
}

TEST(Scalar, ConversionsSaturate) {
  const auto to = [](DType dtype, double value) {
    return convert_scalar({.number = value}, DType::kF32, dtype).integer;
  };
  EXPECT_EQ(to(DType::kI8, 300), 127);
  EXPECT_EQ(to(DType::kI8, -300), -128);
  EXPECT_EQ(to(DType::kU8, -3), 0);
  EXPECT_EQ(to(DType::kI32, NAN), 0);
  EXPECT_EQ(to(DType::kI64, 1e30), INT64_MAX);
  EXPECT_EQ(to(DType::kU64, 1e30), -1);
  EXPECT_EQ(to(DType::kI32, -1.9), -1);
  EXPECT_EQ(to(DType::kBool, 0.5), 1);
}

}  // namespace
}  // namespace ingot::core::loops
