// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "routines/routines.h"
#include "support/error.h"
#include "types/tensor.h"

namespace ingot::core {
namespace {

Tensor mask(std::vector<int64_t> shape, const std::vector<int>& values) {
  Tensor tensor = make_tensor(DType::kBool, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) tensor.data.get()[i] = std::byte(values[i]);
  return tensor;
}

std::vector<int64_t> indices_of(const Tensor& mask, int64_t count, int64_t rank) {
  const Tensor number = make_tensor(DType::kI64, {}), result = make_tensor(DType::kI64, {count, rank});
  const std::vector<TensorView> inputs = {mask.view(), number.view()}, outputs = {result.view()};
  routines::nonzero({.inputs = inputs, .outputs = outputs, .attributes = {}});
  const auto* first = reinterpret_cast<const int64_t*>(result.data.get());
  return {first, first + count * rank};
}

TEST(Nonzero, ListsIndicesInRowMajorOrder) {
  EXPECT_EQ(indices_of(mask({2, 3}, {0, 1, 0, 1, 0, 2}), 3, 2), (std::vector<int64_t>{0, 1, 1, 0, 1, 2}));
  EXPECT_EQ(indices_of(mask({4}, {1, 0, 0, 1}), 2, 1), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(indices_of(mask({2, 0}, {}), 0, 2).empty());
  EXPECT_TRUE(indices_of(mask({}, {1}), 1, 0).empty());
}

// The count comes from another step: an engine file may claim that it is any.
TEST(Nonzero, RejectsOtherCounts) {
  const Tensor three = mask({2, 3}, {0, 1, 0, 1, 0, 1});
  for (const int64_t count : {0, 2, 4}) EXPECT_THROW(indices_of(three, count, 2), UserError) << count;
  EXPECT_THROW(indices_of(three, 3, 1), UserError);
  EXPECT_THROW(indices_of(three, 3, 3), UserError);
}

}  // namespace
}  // namespace ingot::core
