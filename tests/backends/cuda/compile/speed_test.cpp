// SPDX-License-Identifier: Apache-2.0
// What the backend says of the speed of nodes as they are when it is asked: before layouts are assigned.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include "backends/cuda/compile/backend.h"
#include "ir/text.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

Support::Answer answer_for(std::string_view graph_text) {
  const Graph graph = parse_graph(graph_text, ops::find_op);
  const Target target{.backend = "cuda", .device = "sm_90a"};
  return backend().supports(*graph.nodes().back(), {}, target).answer;
}

std::string convolution(std::string_view dtype, int channels, int groups) {
  return fmt::format(
      "graph g(%x: {0}[1,{1},112,112], %w: {0}[96,{2},3,3]) {{\n"
      " %y = convolution(%x, %w) {{stride=[1, 1], padding=[1, 1], dilation=[1, 1], groups={3}}} : "
      "{0}[1,96,112,112]\n return %y\n}}",
      dtype, channels, channels / groups, groups);
}

TEST(CudaSpeed, ConvolutionsInAnyLayoutWillUseTensorCores) {
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    for (const int channels : {3, 16, 96}) {
      SCOPED_TRACE(fmt::format("{} channels of {}", channels, dtype));
      EXPECT_EQ(answer_for(convolution(dtype, channels, 1)), Support::Answer::kFast);
    }
    EXPECT_EQ(answer_for(convolution(dtype, 96, 96)), Support::Answer::kFast);
  }
}

TEST(CudaSpeed, PlainLoopsOverProductsAreSlow) {
  EXPECT_EQ(answer_for(convolution("f16", 96, 8)), Support::Answer::kSlow);
  EXPECT_EQ(answer_for(convolution("f64", 96, 1)), Support::Answer::kSlow);
}

// Stored as other dtypes are, which have another order.
TEST(CudaSpeed, DtypesThatNoRoutineSortsHaveNoKernel) {
  const auto sort = [](std::string_view dtype) {
    return fmt::format(
        "graph g(%x: {0}[64]) {{\n %s, %i = sort(%x) {{axis=0, descending=false}} : {0}[64], i64[64]\n"
        " return %s, %i\n}}",
        dtype);
  };
  for (const char* dtype : {"bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"})
    EXPECT_EQ(answer_for(sort(dtype)), Support::Answer::kFast) << dtype;
  for (const char* dtype : {"u16", "u32", "u64", "e4m3", "e5m2"})
    EXPECT_EQ(answer_for(sort(dtype)), Support::Answer::kSlow) << dtype;
}

}  // namespace
}  // namespace ingot::core::cuda
