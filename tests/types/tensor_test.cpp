// SPDX-License-Identifier: Apache-2.0
#include "types/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "support/error.h"

namespace ingot::core {
namespace {

using Index = std::vector<int64_t>;

constexpr int kDTypes = 19;

TEST(Tensor, IsZeroFilledAndAligned) {
  for (int i = 1; i <= kDTypes; ++i) {
    const Tensor tensor = make_tensor(static_cast<DType>(i), {2, 3, 5});
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data.get()) % 64, 0U);
    EXPECT_TRUE(std::all_of(tensor.data.get(), tensor.data.get() + tensor.bytes(),
                            [](std::byte b) { return b == std::byte{0}; }));
    EXPECT_EQ(tensor.elements(), 30);
    EXPECT_EQ(tensor.bytes(), static_cast<size_t>(6 * row_bytes(tensor.dtype, 5)));
  }
}

TEST(Tensor, ScalarsAndEmptyTensors) {
  EXPECT_EQ(make_tensor(DType::kF64, {}).elements(), 1);
  EXPECT_EQ(make_tensor(DType::kF64, {}).bytes(), 8U);
  const Tensor empty = make_tensor(DType::kF32, {3, 0, 2});
  EXPECT_EQ(empty.elements(), 0);
  EXPECT_EQ(empty.bytes(), 0U);
  EXPECT_EQ(to_dense(empty.view()).shape, (Index{3, 0, 2}));
}

TEST(Tensor, SizesThatOverflowAreRefused) {
  EXPECT_THROW(make_tensor(DType::kU8, {INT64_MAX, 2}), UserError);
  EXPECT_THROW(make_tensor(DType::kF64, {INT64_MAX}), UserError);
  EXPECT_THROW(make_tensor(DType::kF64, {INT64_MAX / 8, 2}), UserError);
  EXPECT_THROW(make_tensor(DType::kF64, {-1}), InternalError);
}

TEST(Tensor, EveryDtypeHoldsSmallIntegers) {
  for (int i = 1; i <= kDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const Tensor tensor = make_tensor(dtype, {3, 3});
    const TensorView view = tensor.view();
    for (int64_t k = 0; k < 9; ++k) write_integer(view, Index{k / 3, k % 3}, k % 7);
    for (int64_t k = 0; k < 9; ++k) {
      const int64_t expected = dtype == DType::kBool ? (k % 7 != 0 ? 1 : 0) : k % 7;
      EXPECT_EQ(read_integer(view, Index{k / 3, k % 3}), expected) << name(dtype);
      EXPECT_EQ(read_double(view, Index{k / 3, k % 3}), static_cast<double>(expected)) << name(dtype);
    }
    write_double(view, Index{1, 1}, 1.0);
    EXPECT_EQ(read_double(view, Index{1, 1}), 1.0) << name(dtype);
  }
}

// Writes a double to one element of the dtype and reads it back as int64.
int64_t through(DType dtype, double value) {
  const Tensor tensor = make_tensor(dtype, {});
  write_double(tensor.view(), {}, value);
  return read_integer(tensor.view(), {});
}

TEST(TensorAccess, IntegersTruncateAndWrap) {
  EXPECT_EQ(through(DType::kI32, -2.9), -2);
  EXPECT_EQ(through(DType::kI8, 200.0), -56);
  EXPECT_EQ(through(DType::kU8, -1.0), 255);
  EXPECT_EQ(through(DType::kI4, 9.0), -7);
  EXPECT_EQ(through(DType::kU4, 17.0), 1);
  EXPECT_EQ(through(DType::kI64, 1e30), INT64_MIN);
  EXPECT_EQ(through(DType::kI64, std::nan("")), INT64_MIN);
  EXPECT_EQ(through(DType::kI32, std::nan("")), 0);
  EXPECT_EQ(through(DType::kBool, std::nan("")), 1);
  EXPECT_EQ(through(DType::kBool, 0.25), 1);
  EXPECT_EQ(through(DType::kF64, 1e30), INT64_MIN);
}

TEST(TensorAccess, WideUnsignedKeepAllBits) {
  const Tensor tensor = make_tensor(DType::kU64, {});
  write_double(tensor.view(), {}, 0x1p63 + 0x1p20);
  EXPECT_EQ(read_double(tensor.view(), {}), 0x1p63 + 0x1p20);
  write_integer(tensor.view(), {}, -1);
  EXPECT_EQ(read_integer(tensor.view(), {}), -1);
  EXPECT_EQ(read_double(tensor.view(), {}), 0x1p64);
}

TEST(TensorAccess, SignedNibblesAreSignExtended) {
  const Tensor tensor = make_tensor(DType::kI4, {3});
  for (int64_t i = 0; i < 3; ++i) write_integer(tensor.view(), Index{i}, -3 - i);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(read_integer(tensor.view(), Index{i}), -3 - i);
  EXPECT_EQ(tensor.data.get()[0], std::byte{0xCD});  // low nibble first
}

TEST(TensorAccess, ComplexIsItsRealPart) {
  const Tensor tensor = make_tensor(DType::kC64, {2});
  write_double(tensor.view(), Index{1}, 2.5);
  float parts[4];
  std::memcpy(parts, tensor.data.get(), sizeof(parts));
  EXPECT_EQ(parts[2], 2.5F);
  EXPECT_EQ(parts[3], 0.0F);
  EXPECT_EQ(read_double(tensor.view(), Index{1}), 2.5);
}

TEST(TensorAccess, IndexNeedsEveryDim) {
  const Tensor tensor = make_tensor(DType::kF32, {2, 2});
  EXPECT_THROW(read_double(tensor.view(), Index{1}), InternalError);
}

// A tensor whose elements are 0, 1, 2 ... modulo 16 in row-major order.
Tensor counting(DType dtype, Index shape) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  const int64_t columns = tensor.shape.back();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    write_integer(tensor.view(), Index{i / columns, i % columns}, i % 16);
  }
  return tensor;
}

void expect_equal_elements(const TensorView& a, const TensorView& b) {
  ASSERT_EQ(a.shape, b.shape);
  for (int64_t i = 0; i < a.shape[0]; ++i) {
    for (int64_t j = 0; j < a.shape[1]; ++j) {
      EXPECT_EQ(read_integer(a, Index{i, j}), read_integer(b, Index{i, j})) << name(a.dtype) << i << "," << j;
    }
  }
}

TEST(ToDense, FollowsAnyStrides) {
  for (const DType dtype :
       {DType::kU4, DType::kI4, DType::kU8, DType::kI16, DType::kF32, DType::kC64, DType::kC128}) {
    const Tensor source = counting(dtype, {4, 5});
    const TensorView view = source.view();
    const int64_t row = view.strides[0];
    const TensorView transposed{view.data, dtype, {5, 4}, {1, row}};
    const TensorView broadcast{view.data, dtype, {3, 5}, {0, 1}};
    const TensorView every_second{view.data, dtype, {4, 3}, {row, 2}};
    for (const TensorView& each : {view, transposed, broadcast, every_second}) {
      const Tensor dense = to_dense(each);
      expect_equal_elements(dense.view(), each);
    }
  }
}

TEST(ToDense, FollowsNegativeStrides) {
  const Tensor source = counting(DType::kI32, {2, 3});
  std::byte* last = source.data.get() + 5 * sizeof(int32_t);
  const Tensor reversed = to_dense({last, DType::kI32, {2, 3}, {-3, -1}});
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(read_integer(reversed.view(), Index{i / 3, i % 3}), 5 - i);
}

TEST(ToDense, OwnsItsBytes) {
  const Tensor source = counting(DType::kI32, {2, 3});
  const Tensor copy = to_dense(source.view());
  write_integer(source.view(), Index{0, 0}, 77);
  EXPECT_EQ(read_integer(copy.view(), Index{0, 0}), 0);
}

TEST(RowMajorStrides, CountElements) {
  EXPECT_EQ(row_major_strides(Index{2, 3, 4}), (Index{12, 4, 1}));
  EXPECT_EQ(row_major_strides(Index{}), Index{});
  EXPECT_EQ(row_major_strides(Index{2, 0, 4}), (Index{0, 4, 1}));
}

}  // namespace
}  // namespace ingot::core
