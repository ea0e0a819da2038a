// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "routines/routines.h"
#include "support/error.h"
#include "types/tensor.h"

namespace ingot::core {
namespace {

std::vector<uint64_t> hashes_of(DType dtype, std::vector<int64_t> shape, const std::vector<uint64_t>& words,
                                std::vector<int64_t> result, DType hashed = DType::kU64) {
  const Tensor x = make_tensor(dtype, std::move(shape)), hashes = make_tensor(hashed, std::move(result));
  std::ranges::copy(words, reinterpret_cast<uint64_t*>(x.data.get()));
  const std::vector<TensorView> inputs = {x.view()}, outputs = {hashes.view()};
  routines::hash_rows({.inputs = inputs, .outputs = outputs, .attributes = {}});
  const auto* first = reinterpret_cast<const uint64_t*>(hashes.data.get());
  return {first, first + hashes.elements()};
}

TEST(HashRows, JoinsTheBitsOfEachRow) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  EXPECT_EQ(hashes_of(DType::kI64, {2, 3}, {1, 2, 4, kSign, kSign | 8, 1}, {2}),
            (std::vector<uint64_t>{7, 9}));
  EXPECT_EQ(hashes_of(DType::kF64, {2}, {kSign, 5}, {}), (std::vector<uint64_t>{kSign | 5}));
  EXPECT_EQ(hashes_of(DType::kI64, {2, 0}, {}, {2}), (std::vector<uint64_t>{0, 0}));
  EXPECT_TRUE(hashes_of(DType::kI64, {0, 2}, {}, {0}).empty());
}

TEST(HashRows, RejectsWhatAnEngineFileMayClaim) {
  EXPECT_THROW(hashes_of(DType::kF32, {2}, {0}, {}), UserError);
  EXPECT_THROW(hashes_of(DType::kI64, {}, {0}, {}), UserError);
  EXPECT_THROW(hashes_of(DType::kI64, {2, 2}, {0, 0, 0, 0}, {3}), UserError);
  EXPECT_THROW(hashes_of(DType::kI64, {2}, {0, 0}, {}, DType::kI64), UserError);
}

}  // namespace
}  // namespace ingot::core
