// SPDX-License-Identifier: Apache-2.0
// Every sample of every operator that lowers to Loop IR, as a CUDA kernel: it compiles for old and new GPUs,
// and where there is a GPU it computes what the interpreter computes.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "support/error.h"
#include "tests/backends/cuda/run_kernels.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::cuda {
namespace {

using test::Case;

class CudaSamples : public ::testing::TestWithParam<const Op*> {};

// Nothing where the record has no such dtype, or GPUs' kernels do not.
void add_case(const Op& op, const Sample& sample, DType dtype, std::vector<Case>& cases) {
  try {
    core::test::SampleGraph made = core::test::make_sample_graph(op, sample, dtype);
    Case c{.kernel = op.lower(*made.node), .symbols = made.symbols, .operands = std::move(made.operands)};
    c.kernel.symbols = made.graph.symbols;
    write_kernel(c.kernel, "tried");
    cases.push_back(std::move(c));
  } catch (const UserError&) {
  } catch (const UnsupportedError& error) {
    EXPECT_EQ(error.details().code, "INGOT-N602");
  }
}

TEST_P(CudaSamples, AreAsTheInterpreterSays) {
  std::vector<Case> cases;
  for (const Sample& sample : GetParam()->samples()) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64})
      add_case(*GetParam(), sample, dtype, cases);
  }
  test::expect_all_same(std::move(cases));
}

// Sizes that no sample has. A size that the operator does not allow is one that the interpreter refuses.
TEST_P(CudaSamples, OtherSizes) {
  if (test::gpu() == nullptr || test::nvrtc() == nullptr) GTEST_SKIP() << "there is no GPU, or no NVRTC";
  std::vector<Case> cases;
  for (core::test::SizedKernel& sized : core::test::at_other_sizes(*GetParam()))
    cases.push_back({.kernel = std::move(sized.kernel), .symbols = std::move(sized.symbols), .operands = {}});
  if (cases.empty()) return;
  const std::string unit = test::write_all(cases);
  const auto module = test::gpu()->load(test::nvrtc()->compile(unit, test::gpu()->architecture()));
  for (const Case& c : cases) {
    try {
      test::expect_same(c, *module, {.relative = 1e-5, .low = 0});
    } catch (const InternalError&) {
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaSamples, ::testing::ValuesIn(core::test::lowered_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::cuda
