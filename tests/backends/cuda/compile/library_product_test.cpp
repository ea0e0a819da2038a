// SPDX-License-Identifier: Apache-2.0
// Which products are offered to cuBLASLt, and how. The templates' tests run them where there are GPU and
// library.
#include "backends/cuda/compile/library_product.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include "backends/cuda/execute/execute.h"
#include "backends/cuda/images/library_call.h"
#include "backends/steps/members.h"
#include "compiler/tactic_table.h"
#include "ir/text.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

constexpr int64_t kSomeVersion = 130100;

std::vector<LoweredKernel> products_of(const std::string& operands, const std::string& call,
                                       bool rounds_to_tf32 = false, int64_t choices = 3) {
  const Graph graph =
      parse_graph(fmt::format("graph g({}) {{\n %y = {}\n return %y\n}}", operands, call), ops::find_op);
  const Node& node = *graph.nodes().back();
  const ContractionSite site{.node = node,
                             .b_is_weight = false,
                             .columns_are_weights = false,
                             .rounds_to_tf32 = rounds_to_tf32,
                             .exact_functions = false,
                             .architecture = "sm_90a",
                             .symbols = graph.symbols,
                             .norms = {}};
  const size_t arguments = given_operands(node).size() + 1;
  return library_products(site, plain_epilogue(node.results[0]->type), arguments, kSomeVersion, choices);
}

TEST(CudaLibraryProducts, HaveAsManyTacticsAsWereAsked) {
  const auto kernels =
      products_of("%x: f16[S,64], %w: f16[48,64], %b: f16[48]", "linear(%x, %w, %b) : f16[S,48]");
  ASSERT_EQ(kernels.size(), 3U);
  for (size_t i = 0; i < kernels.size(); ++i) {
    EXPECT_EQ(kernels[i].tactic, fmt::format("cuBLASLt, choice {}", i));
    EXPECT_EQ(kernels[i].launch.constants[kLibraryBias], 2);
    EXPECT_EQ(kernels[i].launch.constants[kLibraryResult], 3);
    EXPECT_TRUE(executor().is_valid(kernels[i].launch, 4));
  }
  EXPECT_NE(kernels[0].key, kernels[1].key);
}

TEST(CudaLibraryProducts, AreNamedByTheirImages) {
  const auto kernels = products_of("%x: bf16[8,64], %w: bf16[48,64]", "linear(%x, %w) : bf16[8,48]");
  ASSERT_FALSE(kernels.empty());
  const Image image = kernels[0].compile();
  EXPECT_EQ(image.kernel, "linear: cuBLASLt, choice 0");
  EXPECT_EQ(image.target, "cuda:sm_90a+cublaslt");
  EXPECT_EQ(called_library(image), &kCublasLt);
  EXPECT_FALSE(image.code.empty());
}

TEST(CudaLibraryProducts, TacticsSurviveTheTacticFile) {
  const auto kernels = products_of("%x: f16[8,64], %w: f16[48,64]", "linear(%x, %w) : f16[8,48]");
  TacticTable table;
  table.set("GPU", "5d0c", {4, kernels.at(1).tactic, "linear"});
  const TacticTable read = TacticTable::parse(table.text(), "a file");
  ASSERT_NE(read.find("GPU", "5d0c", 4), nullptr);
  EXPECT_EQ(read.find("GPU", "5d0c", 4)->tactic, kernels[1].tactic);
}

TEST(CudaLibraryProducts, TakeBatchesAndTurnedOperands) {
  const auto form = [](const std::vector<LoweredKernel>& kernels) {
    return kernels.empty() ? -1 : kernels[0].launch.constants[kLibraryForm];
  };
  EXPECT_EQ(form(products_of("%a: f16[4,S,64], %b: f16[4,64,48]", "matmul(%a, %b) : f16[4,S,48]")), 0);
  EXPECT_EQ(form(products_of("%a: f16[4,S,64], %b: f16[64,48]", "matmul(%a, %b) : f16[4,S,48]")), 0);
  EXPECT_EQ(form(products_of("%a: f16[S,64], %b: f16[4,64,48]", "matmul(%a, %b) : f16[4,S,48]")), kSharesA);
  EXPECT_EQ(form(products_of("%a: f32[8,64], %b: f32[64,48]", "matmul(%a, %b) : f32[8,48]", true)),
            kRoundsToTf32);
}

TEST(CudaLibraryProducts, AreNoneWhereTheLibraryCannot) {
  const auto count = [](const std::string& operands, const std::string& call) {
    return products_of(operands, call).size();
  };
  EXPECT_EQ(count("%x: f16[8,60], %w: f16[48,60]", "linear(%x, %w) : f16[8,48]"), 0U) << "rows of odd bytes";
  EXPECT_EQ(count("%x: f16[8,64], %w: f16[50,64]", "linear(%x, %w) : f16[8,50]"), 0U) << "odd columns";
  EXPECT_EQ(count("%x: f16[8,S], %w: f16[48,S]", "linear(%x, %w) : f16[8,48]"), 0U) << "depth unknown";
  EXPECT_EQ(count("%x: f32[8,64], %w: f32[48,64]", "linear(%x, %w) : f32[8,48]"), 0U) << "f32 without TF32";
  EXPECT_EQ(count("%x: f64[8,64], %w: f64[48,64]", "linear(%x, %w) : f64[8,48]"), 0U) << "f64";
  EXPECT_EQ(count("%a: f16[2,4,8,64], %b: f16[2,1,64,48]", "matmul(%a, %b) : f16[2,4,8,48]"), 0U)
      << "a batch that is shared in part";
}

}  // namespace
}  // namespace ingot::core::cuda
