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

// Operands that are there, as the kernel's first buffers; nothing where the record refuses the dtype.
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
// refuses.
TEST_P(OpSamples, OtherSizes) {
  for (const Sample& sample : GetParam()->samples()) {
    const auto made = core::test::make_sample_graph(*GetParam(), sample);
    loops::Kernel kernel = GetParam()->lower(*made.node);
    if (made.symbols.empty()) continue;
    for (auto& [name, info] : made.graph.symbols) kernel.symbols[name].range = {0, INT64_MAX};
    for (const int64_t size : {0, 1, 37}) {
      SymbolValues symbols = made.symbols;
      for (auto& [name, value] : symbols) value = size;
      try {
        test::expect_same(kernel, symbols, {.relative = 1e-5, .low = 0});
      } catch (const InternalError&) {
      }
    }
  }
}

std::vector<const Op*> lowered_ops() {
  std::vector<const Op*> result;
  for (const Op* op : ops::all_ops()) {
    if (op->lower != nullptr && op->samples != nullptr) result.push_back(op);
  }
  return result;
}

INSTANTIATE_TEST_SUITE_P(All, OpSamples, ::testing::ValuesIn(lowered_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::cpu
