// SPDX-License-Identifier: Apache-2.0
#include "loops/overwrite.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using namespace test;

using Positions = std::vector<uint32_t>;

// y[i, j] = x[load...] + z[i, j], over f32[4, 4]
Kernel sum_kernel(std::vector<Dim> load_index) {
  Kernel kernel = unary_kernel(Unary::kNegate, DType::kF32, {4, 4});
  kernel.buffers.push_back(buffer("z", DType::kF32, {4, 4}));
  kernel.stages[0].value = binary(Binary::kAdd, load(0, DType::kF32, std::move(load_index)),
                                  load(2, DType::kF32, {symbol("i0"), symbol("i1")}));
  return kernel;
}

// The result with x in memory of its own, and with x in the result's memory.
void expect_same_in_place(const Kernel& kernel, size_t overwritten) {
  std::vector<Tensor> apart, together;
  for (const Buffer& buffer : kernel.buffers) {
    std::vector<float> values;
    for (int i = 0; i < 16; ++i) values.push_back(static_cast<float>((i * 7) % 5) - 2);
    apart.push_back(tensor_of(
        values, {buffer.type.shape[0].constant().value(), buffer.type.shape[1].constant().value()}));
    together.push_back(to_dense(apart.back().view()));
  }
  together[1] = together[overwritten];
  ASSERT_EQ(run(kernel, apart), KernelStatus::kOk);
  ASSERT_EQ(run(kernel, together), KernelStatus::kOk);
  EXPECT_EQ(std::memcmp(apart[1].data.get(), together[1].data.get(), apart[1].bytes()), 0);
}

TEST(OverwritableBuffers, ElementwiseOperandsMayBeOverwritten) {
  const Kernel kernel = sum_kernel({symbol("i0"), symbol("i1")});
  EXPECT_EQ(overwritable_buffers(kernel), (Positions{0, 2}));
  expect_same_in_place(kernel, 0);
  expect_same_in_place(kernel, 2);
}

TEST(OverwritableBuffers, NotWhereOtherElementsAreRead) {
  EXPECT_EQ(overwritable_buffers(sum_kernel({symbol("i1"), symbol("i0")})), Positions{2});
  EXPECT_EQ(overwritable_buffers(sum_kernel({Dim(3) - symbol("i0"), symbol("i1")})), Positions{2});
  EXPECT_EQ(overwritable_buffers(sum_kernel({symbol("i0"), 0})), Positions{2});
}

TEST(OverwritableBuffers, NotWhereTypesDiffer) {
  Kernel kernel = sum_kernel({symbol("i0"), symbol("i1")});
  kernel.buffers[0].type.shape = {4, 5};
  EXPECT_EQ(overwritable_buffers(kernel), Positions{2});
}

TEST(OverwritableBuffers, RowsThatAreReducedFirstMayBeOverwritten) {
  const Kernel kernel = softmax_kernel(4, 4);
  EXPECT_EQ(overwritable_buffers(kernel), Positions{0});
  expect_same_in_place(kernel, 0);
}

TEST(OverwritableBuffers, NotRowsOfOtherPoints) {
  Kernel kernel = softmax_kernel(4, 4);
  kernel.stages[0].value = load(0, DType::kF32, {Dim(3) - symbol("i"), symbol("j")});
  EXPECT_EQ(overwritable_buffers(kernel), Positions{});
}

TEST(OverwritableBuffers, NotRowsThatAnEmitterMayComputeWhereTheyAreRead) {
  Kernel kernel = softmax_kernel(4, 4);
  kernel.stages[3].value = local(1, DType::kF32, {Dim(3) - symbol("j")});
  EXPECT_EQ(overwritable_buffers(kernel), Positions{});
}

TEST(OverwritableBuffers, NotWhereResultsAreStoredTwice) {
  Kernel kernel = sum_kernel({symbol("i0"), symbol("i1")});
  kernel.parallel.push_back({"k", 2});
  EXPECT_EQ(overwritable_buffers(kernel), Positions{});
}

}  // namespace
}  // namespace ingot::core::loops
