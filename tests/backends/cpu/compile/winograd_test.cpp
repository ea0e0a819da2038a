// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/schedules/winograd.h"

#include <gtest/gtest.h>

#include "tests/backends/cpu/compile/schedule_runner.h"

namespace ingot::core::cpu {
namespace {

struct Case {
  int64_t images, channels, columns, height, width;
  bool bias;
};

class WinogradSchedule : public testing::TestWithParam<std::tuple<Case, const char*>> {};

constexpr double kResultMatrix[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};

double expected_at(const Case& c, const std::vector<int64_t>& at, const HostBuffer& image,
                   const HostBuffer& weight) {
  const int64_t line = at[0] * ((c.height + 1) / 2) + at[2] / 2;
  const int64_t tile = line * ((c.width + 1) / 2) + at[3] / 2;
  double sum = 0;
  for (int64_t place = 0; place < 16; ++place) {
    double product = 0;
    for (int64_t channel = 0; channel < c.channels; ++channel)
      product += double{image.at({place, tile, channel})} * weight.at({place, at[1], channel});
    sum += kResultMatrix[at[2] % 2][place / 4] * kResultMatrix[at[3] % 2][place % 4] * product;
  }
  return sum;
}

TEST_P(WinogradSchedule, EqualsTheSumOverPlacesAndChannels) {
  const auto& [c, level] = GetParam();
  if (!host_cpu_features().covers(parse_cpu_features(level)))
    GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.features = parse_cpu_features(level);
  const Dim images = Dim::symbol("B");
  const Dim tiles = images * ((c.height + 1) / 2) * ((c.width + 1) / 2);
  TensorType result{DType::kF32, {images, c.columns, c.height, c.width}, {}};
  std::vector<TensorType> operands{{DType::kF32, {16, tiles, c.channels}, {}},
                                   {DType::kF32, {16, c.columns, c.channels}, {}}};
  if (c.bias) operands.push_back({DType::kF32, {c.columns}, {}});
  ASSERT_TRUE(supports_winograd(operands, result).yes);
  const LayoutRequest request = winograd_layouts(operands, target.features);
  for (size_t i = 0; i < operands.size(); ++i) operands[i].layout = *request.operands[i];
  result.layout = *request.results[0];
  const ScheduledKernel plan = plan_winograd(operands, result, plain_epilogue(result), {{"B", {}}}, target);

  const SymbolValues symbols{{"B", c.images}};
  std::vector<HostBuffer> buffers;
  for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
  buffers.push_back(HostBuffer(result, symbols));
  run_scheduled(plan, symbols, buffers);
  for_each_index({c.images, c.columns, c.height, c.width}, [&](const std::vector<int64_t>& at) {
    const double bias = c.bias ? buffers[2].at({at[1]}) : 0;
    ASSERT_NEAR(buffers.back().at(at), expected_at(c, at, buffers[0], buffers[1]) + bias, 1e-3)
        << testing::PrintToString(at);
  });
}

const Case kCases[] = {
    {1, 32, 64, 8, 8, true},    // whole panels
    {2, 5, 33, 5, 7, false},    // odd sizes, blocks that span lines and images, a cut panel
    {1, 400, 16, 4, 40, true},  // sums in parts; lines of several blocks
    {3, 7, 20, 2, 2, false},    // one tile an image
    {1, 3, 17, 1, 5, true},     // half a tile high
    {0, 16, 16, 6, 6, false},   // no image
};

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradSchedule,
                         testing::Combine(testing::ValuesIn(kCases),
                                          testing::Values("x86-64-v3", "x86-64-v4")));

}  // namespace
}  // namespace ingot::core::cpu
