// SPDX-License-Identifier: Apache-2.0
#include "loops/zero_padding.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::symbol;

constexpr std::array kRows = {0, 1};
constexpr std::array kColumns = {1, 0};

// Calls function(index) for every index of a constant shape.
template <typename Function>
void each_index(const Shape& shape, Function&& function) {
  std::vector<Dim> index(shape.size(), Dim(0));
  for (int64_t left = *product(shape).constant(); left > 0; --left) {
    function(index);
    for (size_t i = shape.size(); i-- > 0;) {
      index[i] = index[i] + Dim(1);
      if (index[i] != shape[i]) break;
      index[i] = 0;
    }
  }
}

Shape with_sizes(const Shape& shape, const SymbolValues& sizes) {
  Shape result;
  for (const Dim& dim : shape) result.emplace_back(evaluate(dim, sizes));
  return result;
}

// Padding becomes zero, elements stay as they are.
void expect_zeroed(const TensorType& type, const SymbolValues& sizes = {}) {
  const auto kernel = zero_padding(type);
  ASSERT_TRUE(kernel.has_value());
  verify(*kernel);
  const Shape shape = with_sizes(type.shape, sizes);
  std::set<int64_t> elements;
  each_index(shape, [&](const std::vector<Dim>& index) {
    elements.insert(*storage_offset(type.layout, shape, index).constant());
  });
  const int64_t count = *storage_elements(type.layout, shape).constant();
  std::vector<int64_t> storage;
  for (const Dim& extent : storage_shape(type.layout, shape)) storage.push_back(*extent.constant());
  std::vector tensors = {test::tensor_of(std::vector<float>(static_cast<size_t>(count), 7), storage)};
  EXPECT_EQ(test::run(*kernel, tensors, sizes), KernelStatus::kOk);
  for (int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(reinterpret_cast<const float*>(tensors[0].data.get())[i], elements.contains(i) ? 7 : 0)
        << to_string(type) << " at " << i;
  }
}

TEST(ZeroPadding, StoresZerosBeyondTheElements) {
  expect_zeroed({DType::kF32, {9, 5}, Layout::blocked(kRows, 0, 16)});
  expect_zeroed({DType::kF32, {17, 3}, Layout::blocked(kColumns, 0, 16)});
  expect_zeroed({DType::kF32, {3, 24}, Layout::blocked(kColumns, 1, 16)});
  expect_zeroed({DType::kF32, {9, 5}, parse_layout("{0/4, 1/8, 0%4, 1%8}", 2)});
  expect_zeroed({DType::kF32, {9, 5}, parse_layout("{0/16, 1, 0/4%4, 0%4}", 2)});
}

TEST(ZeroPadding, HoldsForSymbolicSizes) {
  const TensorType type{DType::kF32, {symbol("N"), symbol("K")}, Layout::blocked(kRows, 0, 8)};
  for (const int64_t rows : {1, 7, 8, 9}) expect_zeroed(type, {{"N", rows}, {"K", 3}});
}

TEST(ZeroPadding, NothingWhereStorageIsFull) {
  EXPECT_FALSE(zero_padding({DType::kF32, {9, 5}, {}}));
  EXPECT_FALSE(zero_padding({DType::kF32, {9, 5}, Layout::permutation(kColumns)}));
  EXPECT_FALSE(zero_padding({DType::kF32, {32, 5}, Layout::blocked(kRows, 0, 16)}));
}

}  // namespace
}  // namespace ingot::core::loops
