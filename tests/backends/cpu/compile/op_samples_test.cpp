// SPDX-License-Identifier: Apache-2.0
// Every sample of every operator that lowers to Loop IR: machine code against the interpreter.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "support/error.h"
#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::cpu {
namespace {

class OpSamples : public ::testing::TestWithParam<const Op*> {};

// Operands that are there, as the kernel's first buffers; nothing where the record rejects the dtype.
std::optional<core::test::SampleGraph> make(const Op& op, const Sample& sample, DType dtype) {
  try {
    return core::test::make_sample_graph(op, sample, dtype);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

TEST_P(OpSamples, AreAsTheInterpreterSays) {
  for (const Sample& sample : GetParam()->samples()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      const auto made = make(*GetParam(), sample, dtype);
      if (!made) continue;
      loops::Kernel kernel = GetParam()->lower(*made->node);
      kernel.symbols = made->graph.symbols;
      test::expect_same(kernel, made->symbols, {.relative = 1e-5}, made->operands);
    }
  }
}

// Random data, sizes that no sample has. A size that the operator does not allow is one that the interpreter
// rejects.
TEST_P(OpSamples, OtherSizes) {
  for (const core::test::SizedKernel& sized : core::test::at_other_sizes(*GetParam())) {
    try {
      test::expect_same(sized.kernel, sized.symbols, {.relative = 1e-5, .low = 0});
    } catch (const InternalError&) {
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OpSamples, ::testing::ValuesIn(core::test::lowered_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::cpu
