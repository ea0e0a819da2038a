// SPDX-License-Identifier: Apache-2.0
// The width of indices in the templates of products: 64 bits make their ends an eighth longer.
#include "backends/cuda/compile/contraction.h"

#include <gmock/gmock.h>

#include <fmt/core.h>

#include "backends/steps/members.h"
#include "ir/text.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

using ::testing::HasSubstr;

std::string linear_text(const std::string& rows) {
  const Graph graph = parse_graph(fmt::format("graph g(%x: f16[{0},768], %w: f16[3072,768]) {{\n"
                                              " %y = linear(%x, %w) : f16[{1},3072]\n return %y\n}}",
                                              rows, rows.substr(0, rows.find(' '))),
                                  ops::find_op);
  const Node& node = *graph.nodes().back();
  const ContractionSite site{.node = node,
                             .b_is_weight = true,
                             .columns_are_weights = true,
                             .rounds_to_tf32 = false,
                             .exact_functions = false,
                             .architecture = "sm_90a",
                             .symbols = graph.symbols,
                             .norms = {}};
  const loops::Kernel epilogue = plain_epilogue(node.results[0]->type);
  return write_contraction(site, epilogue, rank_tactics(site, epilogue)[0]).text;
}

TEST(CudaContractionText, IndicesThatFitHave32Bits) {
  EXPECT_THAT(linear_text("4096"), HasSubstr("typedef i32 idx;"));
  EXPECT_THAT(linear_text("S in 1..4096"), HasSubstr("typedef i32 idx;"));
}

TEST(CudaContractionText, OthersHave64) {
  EXPECT_THAT(linear_text("699051"), HasSubstr("typedef i64 idx;"));  // 2^31 and more elements
  EXPECT_THAT(linear_text("699050"),
              HasSubstr("typedef i64 idx;"));  // fewer, but tiles reach beyond the edge
  EXPECT_THAT(linear_text("S in 1..1000000"), HasSubstr("typedef i64 idx;"));
}

}  // namespace
}  // namespace ingot::core::cuda
