// SPDX-License-Identifier: Apache-2.0
#include "loops/move_bits.h"

#include <gtest/gtest.h>

#include <cmath>

#include "loops/rewrite.h"
#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::buffer;
using test::symbol;

// y[i] = value(x[i]), x and y of one dtype.
template <typename Value>
Kernel moving_kernel(DType dtype, const Value& value) {
  return test::elementwise_kernel(value, dtype, {8});
}

Expr before_fourth() {
  return binary(Binary::kLess, index_value(symbol("i0")), integer_constant(DType::kI64, 4));
}
Expr padded(const Expr& x) { return select(before_fourth(), x, constant(x->dtype, 1.5)); }

Expr with_other_signs(const Expr& x) {
  return select(before_fourth(), unary(Unary::kNegate, x), unary(Unary::kAbsolute, x));
}

// As copysign: by the sign of what is moved, but that of NaN does not count.
Expr by_own_sign(const Expr& x) {
  const Expr negative = binary(Binary::kLess, bitcast(DType::kI32, x), integer_constant(DType::kI32, 0));
  const Expr size = unary(Unary::kAbsolute, x), is_number = binary(Binary::kEqual, x, x);
  return select(binary(Binary::kAnd, negative, is_number), constant(x->dtype, -2), size);
}
Expr without_nan(const Expr& x) {
  const Expr is_nan = binary(Binary::kNotEqual, x, x);
  return select(unary(Unary::kNot, is_nan), x, constant(x->dtype, 3));
}

Tensor halves(const std::vector<uint16_t>& bits, DType dtype) {
  Tensor tensor = make_tensor(dtype, {static_cast<int64_t>(bits.size())});
  std::ranges::copy(bits, reinterpret_cast<uint16_t*>(tensor.data.get()));
  return tensor;
}

bool moves(const Kernel& kernel) { return !is_floating(move_bits(kernel).buffers[0].type.dtype); }

void expect_same_results(const Kernel& kernel, DType dtype) {
  Kernel moved = move_bits(kernel);
  verify(moved);
  ASSERT_EQ(moved.buffers[0].type.dtype, DType::kI16);
  const std::vector<uint16_t> bits = {0x3f80, 0x8001, 0x7c01, 0xffff, 0xc000, 0x8000, 0, 0xfc00};
  std::vector<Tensor> as_floats{halves(bits, dtype), make_tensor(dtype, {8})};
  std::vector<Tensor> as_integers{halves(bits, DType::kI16), make_tensor(DType::kI16, {8})};
  ASSERT_EQ(test::run(kernel, as_floats), KernelStatus::kOk);
  ASSERT_EQ(test::run(moved, as_integers), KernelStatus::kOk);
  as_integers[1].dtype = dtype;
  for (int64_t i = 0; i < 8; ++i) {
    const double expected = read_double(as_floats[1].view(), {{i}});
    const double result = read_double(as_integers[1].view(), {{i}});
    EXPECT_TRUE((result == expected && std::signbit(result) == std::signbit(expected)) ||
                (std::isnan(result) && std::isnan(expected)))
        << i;
  }
}

TEST(MoveBits, ComputesTheSame) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    expect_same_results(moving_kernel(dtype, padded), dtype);
    expect_same_results(moving_kernel(dtype, with_other_signs), dtype);
    expect_same_results(moving_kernel(dtype, by_own_sign), dtype);
    expect_same_results(moving_kernel(dtype, without_nan), dtype);
  }
}

TEST(MoveBits, LeavesWhatIsComputed) {
  const auto same = [](const Expr& x) { return x; };
  EXPECT_TRUE(moves(moving_kernel(DType::kBF16, same)));
  EXPECT_TRUE(moves(moving_kernel(DType::kE5M2, same)));
  EXPECT_FALSE(moves(moving_kernel(DType::kF32, same)));
  EXPECT_FALSE(moves(moving_kernel(DType::kF16, [](const Expr& x) { return unary(Unary::kSquareRoot, x); })));
  const auto choice = [](const Expr& x) {  // reads what it moves
    return select(binary(Binary::kLess, x, constant(x->dtype, 0)), constant(x->dtype, 0), x);
  };
  EXPECT_FALSE(moves(moving_kernel(DType::kF16, choice)));
  Kernel converted = moving_kernel(DType::kF16, same);
  converted.buffers[1].type.dtype = DType::kF32;
  EXPECT_FALSE(moves(converted));
  converted.buffers[1].type.dtype = DType::kBF16;  // other bits
  EXPECT_FALSE(moves(converted));
}

TEST(MoveBits, LeavesReductions) {
  Kernel kernel{.name = "largest"};
  kernel.buffers = {buffer("x", DType::kF16, {4, 8}), buffer("y", DType::kF16, {4}, Access::kWrite)};
  kernel.parallel = {{"i", 4}};
  const Dim i = symbol("i"), j = symbol("j");
  kernel.stages = {{.name = "y",
                    .reduce = {{"j", 8}},
                    .combine = Combine::kMaximum,
                    .value = load(0, DType::kF16, {i, j}),
                    .store = Store{1, {i}}}};
  verify(kernel);
  EXPECT_FALSE(moves(kernel));
}

}  // namespace
}  // namespace ingot::core::loops
