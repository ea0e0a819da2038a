// SPDX-License-Identifier: Apache-2.0
// Each sample of each operator as an engine on the device, with tensors of the host and of the device.
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/accuracy.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "support/error.h"
#include "tests/backends/device/device_run.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

class DeviceSamples : public ::testing::TestWithParam<const Op*> {};

bool is_packed(const Value* value) { return !value->type.layout.is_row_major(); }

bool binds_all_symbols(const Graph& graph) {
  return std::ranges::all_of(graph.symbols, [&](const auto& symbol) {
    return std::ranges::any_of(graph.inputs(), [&](const Value* input) {
      return std::ranges::count(input->type.shape, Dim::symbol(symbol.first)) > 0;
    });
  });
}

// Nothing where the record rejects the dtype, and for operands that callers do not have: in layouts, or
// without a size that an attribute names.
std::optional<SampleGraph> device_sample(const Op& op, const Sample& sample, DType dtype) {
  try {
    SampleGraph made = make_sample_graph(op, sample, dtype);
    if (std::ranges::any_of(made.graph.inputs(), is_packed) || !binds_all_symbols(made.graph))
      return std::nullopt;
    for (Value*& output : made.graph.outputs) {
      if (is_packed(output)) output = made.graph.call(ops::relayout, {output}, ops::Relayout{});
    }
    return made;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

void expect_close(const Tensor& expected, const Tensor& got) {
  ASSERT_EQ(expected.shape, got.shape);
  const std::vector<double> wanted = values_of(expected), values = values_of(got);
  double squares = 0;
  for (const double value : wanted) squares += std::isfinite(value) ? value * value : 0;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(wanted.size(), 1)));
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_TRUE(agree(wanted[i], values[i], allowed_difference(expected.dtype, wanted[i], rms)))
        << "element " << i << ": " << values[i] << ", not " << wanted[i];
}

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
    expect_close(expected[i], by_host[i]);
    expect_close(expected[i], by_device[i]);
  }
}

TEST_P(DeviceSamples, GiveWhatTheInterpreterGives) {
  for (const Sample& sample : GetParam()->samples()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF64}) {
      const auto made = device_sample(*GetParam(), sample, dtype);
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

std::vector<const Op*> sampled_ops() {
  std::vector<const Op*> found;
  std::ranges::copy_if(ops::all_ops(), std::back_inserter(found),
                       [](const Op* op) { return op->samples != nullptr; });
  return found;
}

INSTANTIATE_TEST_SUITE_P(All, DeviceSamples, ::testing::ValuesIn(sampled_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
