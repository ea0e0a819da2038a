// SPDX-License-Identifier: Apache-2.0
// Each sample of each operator as an engine on the device, with tensors of the host and of the device.
#include <gtest/gtest.h>

#include "ops/ops.h"
#include "support/error.h"
#include "tests/backends/device/device_run.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

class DeviceSamples : public ::testing::TestWithParam<const Op*> {};

void check(const SampleGraph& made, int level) {
  Device device;
  std::shared_ptr<Engine> engine;
  try {
    engine = device.build(made.graph, level);
  } catch (const UnsupportedError&) {
    return;
  }
  Context context(engine);
  const std::vector<Tensor> expected = evaluate_sample(made);
  const std::vector<Tensor> by_host = call(device, context, made.operands, Where::kHost, Where::kHost);
  const std::vector<Tensor> by_device = call_by_copies(device, context, made.operands);
  ASSERT_EQ(by_host.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    expect_near(expected[i], by_host[i]);
    expect_near(expected[i], by_device[i]);
  }
}

TEST_P(DeviceSamples, GiveWhatTheInterpreterGives) {
  for (const Sample& sample : GetParam()->samples()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      const auto made = callable_sample(*GetParam(), sample, dtype);
      for (const int level : dtype == DType::kF32 ? std::vector{0, 3} : std::vector{3}) {
        SCOPED_TRACE(std::string(name(dtype)) + ", level " + std::to_string(level));
        if (made) check(*made, level);
      }
    }
  }
}

// Else little would be tested: only routines, which the host computes, may be refused.
TEST(DeviceOperators, AreRun) {
  const Device device;
  std::vector<std::string_view> refused;
  for (const Op* op : ops::all_ops()) {
    if (op->samples == nullptr || op->decompose != nullptr || !op->routine.empty()) continue;
    const SampleGraph made = make_sample_node(*op, op->samples().front());
    const Support support = device.backend->supports(*made.node, typical_sizes(made.graph.symbols), {});
    if (support.answer == Support::Answer::kNo) refused.push_back(op->name);
  }
  EXPECT_EQ(refused, std::vector<std::string_view>());
}

INSTANTIATE_TEST_SUITE_P(All, DeviceSamples, ::testing::ValuesIn(ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
