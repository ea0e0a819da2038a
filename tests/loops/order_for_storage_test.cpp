// SPDX-License-Identifier: Apache-2.0
#include "loops/order_for_storage.h"

#include <gtest/gtest.h>

#include "loops/index_facts.h"
#include "tests/loops/kernels.h"

namespace ingot::core::loops {
namespace {

using test::buffer;
using test::symbol;

IndexFacts facts(const std::vector<Loop>& loops, const SymbolTable& symbols = {}) {
  IndexFacts result(symbols);
  for (const Loop& loop : loops) result.add(loop);
  return result;
}

TEST(IndexFacts, DivisionsOfLinearIndicesDisappear) {
  const Dim i = symbol("i"), j = symbol("j"), s = symbol("S");
  const IndexFacts known = facts({{"i", 8}, {"j", 16}});
  EXPECT_EQ(known.simplify(floor_divide(i * Dim(16) + j, 16)), i);
  EXPECT_EQ(known.simplify(modulo(i * Dim(16) + j, 16)), j);
  EXPECT_EQ(known.simplify(floor_divide(i * Dim(16) + j, 64)), floor_divide(i, 4));
  EXPECT_EQ(known.simplify(modulo(i * Dim(16) + j, 64)), modulo(i, 4) * Dim(16) + j);
  EXPECT_EQ(known.simplify(modulo(j + Dim(1), 16)), modulo(j + Dim(1), 16));
  const IndexFacts symbolic = facts({{"i", symbol("H")}, {"j", s}},
                                    {{"S", {.range = {1, INT64_MAX}}}, {"H", {.range = {1, INT64_MAX}}}});
  EXPECT_EQ(symbolic.simplify(floor_divide(i * s + j, s)), i);
  EXPECT_EQ(symbolic.simplify(modulo(i * s + j, s)), j);
}

TEST(OrderForStorage, ElementwiseLoopsBecomeOne) {
  const Kernel kernel =
      order_for_storage(test::unary_kernel(Unary::kNegate, DType::kF32, {symbol("B"), 4, symbol("S")}));
  ASSERT_EQ(kernel.parallel.size(), 1U);
  EXPECT_EQ(kernel.parallel[0].extent, symbol("B") * symbol("S") * Dim(4));
  EXPECT_EQ(kernel.stages[0].store->index[0], symbol(kernel.parallel[0].variable));
}

TEST(OrderForStorage, InnermostLoopFollowsTheStore) {
  Kernel kernel = test::unary_kernel(Unary::kNegate, DType::kF32, {2, 32, 5, 7});
  const int channels_last[] = {0, 2, 3, 1};
  kernel.buffers[1].type.layout = Layout::permutation(channels_last);
  const Kernel ordered = order_for_storage(kernel);
  ASSERT_EQ(ordered.parallel.size(), 3U);  // image, place, channel
  EXPECT_EQ(ordered.parallel[1].extent, Dim(35));
  EXPECT_EQ(ordered.parallel[2].extent, Dim(32));
  const int rows[] = {0, 1, 2, 3};
  kernel.buffers[0].type.layout = kernel.buffers[1].type.layout = Layout::blocked(rows, 1, 16);
  EXPECT_EQ(order_for_storage(kernel).parallel.size(), 1U);
}

TEST(OrderForStorage, AFewNeighboursGiveWayToRowsThatAreRead) {
  Kernel kernel = test::unary_kernel(Unary::kNegate, DType::kF32, {2, 3, 9, 11});
  const int channels_last[] = {0, 2, 3, 1};
  kernel.buffers[1].type.layout = Layout::permutation(channels_last);
  const Kernel ordered = order_for_storage(kernel);
  ASSERT_EQ(ordered.parallel.size(), 4U);  // image, row, channel, column
  EXPECT_EQ(ordered.parallel[2].extent, Dim(3));
  EXPECT_EQ(ordered.parallel[3].extent, Dim(11));
}

TEST(OrderForStorage, ReshapedIndicesSplitTheirLoop) {
  // y[s, c] = x[c / 8, s, c % 8]: heads are put side by side
  const Dim s = symbol("s"), c = symbol("c");
  Kernel kernel{.name = "heads", .parallel = {{"s", symbol("S")}, {"c", 32}}};
  kernel.buffers = {buffer("x", DType::kF32, {4, symbol("S"), 8}),
                    buffer("y", DType::kF32, {symbol("S"), 32}, Access::kWrite)};
  kernel.stages = {{.name = "y",
                    .value = load(0, DType::kF32, {floor_divide(c, 8), s, modulo(c, 8)}),
                    .store = Store{1, {s, c}}}};
  const Kernel ordered = order_for_storage(kernel);
  ASSERT_EQ(ordered.parallel.size(), 3U);
  EXPECT_EQ(to_string(ordered).find("floordiv"), std::string::npos) << to_string(ordered);
}

// The ordered kernel does the same to the same storage.
void expect_unchanged(const Kernel& kernel, const SymbolValues& symbols) {
  std::vector<Tensor> tensors;
  for (const Buffer& buffer : kernel.buffers) {
    const int64_t elements = evaluate(storage_elements(buffer.type.layout, buffer.type.shape), symbols);
    tensors.push_back(make_tensor(buffer.type.dtype, {elements}));
    for (int64_t i = 0; i < elements && buffer.access == Access::kRead; ++i) {
      reinterpret_cast<float*>(tensors.back().data.get())[i] = static_cast<float>(i % 17);
    }
  }
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  interpret(kernel, views, symbols);
  const Tensor expected = to_dense(tensors.back().view());
  std::fill_n(reinterpret_cast<float*>(tensors.back().data.get()), tensors.back().elements(), 0.0F);
  verify(order_for_storage(kernel));
  interpret(order_for_storage(kernel), views, symbols);
  for (int64_t i = 0; i < expected.elements(); ++i) {
    ASSERT_EQ(reinterpret_cast<const float*>(expected.data.get())[i],
              reinterpret_cast<const float*>(tensors.back().data.get())[i])
        << to_string(kernel) << to_string(order_for_storage(kernel));
  }
}

TEST(OrderForStorage, KeepsResults) {
  expect_unchanged(test::softmax_kernel(symbol("B"), symbol("C")), {{"B", 3}, {"C", 11}});
  Kernel kernel = test::unary_kernel(Unary::kSquareRoot, DType::kF32, {2, 32, 5, 1});
  const int rows[] = {0, 1, 2, 3}, channels_last[] = {0, 2, 3, 1};
  for (const Layout& from : {Layout::blocked(rows, 1, 16), Layout::permutation(channels_last), Layout{}}) {
    for (const Layout& to : {Layout::blocked(rows, 1, 8), Layout::permutation(channels_last), Layout{}}) {
      kernel.buffers[0].type.layout = from;
      kernel.buffers[1].type.layout = to;
      expect_unchanged(kernel, {});
    }
  }
}

// Norm of rows that have two dims.
TEST(OrderForStorage, RowsOfSeveralDimsBecomeFlat) {
  const Dim i = symbol("i"), h = symbol("h"), w = symbol("w");
  Kernel kernel{.name = "norm", .parallel = {{"i", symbol("N")}}};
  kernel.buffers = {buffer("x", DType::kF32, {symbol("N"), 3, 5}),
                    buffer("y", DType::kF32, {symbol("N"), 3, 5}, Access::kWrite)};
  const std::vector<Loop> row = {{"h", 3}, {"w", 5}};
  const Expr x = load(0, DType::kF32, {i, h, w});
  kernel.stages = {
      {.name = "d", .loops = row, .value = binary(Binary::kMultiply, x, x)},
      {.name = "t", .reduce = row, .combine = Combine::kAdd, .value = local(0, DType::kF32, {h, w})},
      {.name = "y",
       .loops = row,
       .value = binary(Binary::kAdd, local(0, DType::kF32, {h, w}), local(1, DType::kF32)),
       .store = Store{1, {i, h, w}}}};
  const Kernel ordered = order_for_storage(kernel);
  for (const Stage& stage : ordered.stages)
    EXPECT_LE(stage.loops.size() + stage.reduce.size(), 1U) << to_string(ordered);
  expect_unchanged(kernel, {{"N", 4}});
}

}  // namespace
}  // namespace ingot::core::loops
