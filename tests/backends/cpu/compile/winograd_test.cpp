// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/winograd.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct WinogradCase {
  int64_t images, channels, columns, height, width;
  bool bias;
};
void PrintTo(const WinogradCase& c, std::ostream* out) {
  *out << sizes_text({c.images, c.channels, c.columns, c.height, c.width}) << (c.bias ? " bias" : "");
}

class WinogradTemplate : public testing::TestWithParam<std::tuple<WinogradCase, const char*>> {};

constexpr double kResultMatrix[2][4] = {{1, 1, 1, 0}, {0, 1, -1, -1}};

int64_t tile_of(const WinogradCase& c, const std::vector<int64_t>& at) {
  const int64_t line = at[0] * ((c.height + 1) / 2) + at[2] / 2;
  return line * ((c.width + 1) / 2) + at[3] / 2;
}

double winograd_expected_at(const WinogradCase& c, const std::vector<int64_t>& at, const HostBuffer& image,
                            const HostBuffer& weight) {
  const int64_t tile = tile_of(c, at);
  double sum = 0;
  for (int64_t place = 0; place < 16; ++place) {
    double product = 0;
    for (int64_t channel = 0; channel < c.channels; ++channel)
      product += double{image.at({place, tile, channel})} * weight.at({place, at[1], channel});
    sum += kResultMatrix[at[2] % 2][place / 4] * kResultMatrix[at[3] % 2][place % 4] * product;
  }
  return sum;
}

// The template's kernel for a case, and random operands.
struct Built {
  Built(const WinogradCase& c, const char* level) : symbols{{"B", c.images}} {
    Target target;
    target.device = level;
    const Dim images = Dim::symbol("B");
    const Dim tiles = images * ((c.height + 1) / 2) * ((c.width + 1) / 2);
    TensorType result{DType::kF32, {images, c.columns, c.height, c.width}, {}};
    std::vector<TensorType> operands{{DType::kF32, {16, tiles, c.channels}, {}},
                                     {DType::kF32, {16, c.columns, c.channels}, {}},
                                     {DType::kF32, {images, c.channels, c.height, c.width}, {}},
                                     {DType::kF32, {c.columns, c.channels, 3, 3}, {}}};
    if (c.bias) operands.push_back({DType::kF32, {c.columns}, {}});
    EXPECT_TRUE(supports_winograd(operands, result).yes);
    const LayoutRequest request = winograd_layouts(operands, features_of(target));
    for (size_t i = 0; i < operands.size(); ++i) operands[i].layout = request.operands[i].value_or(Layout{});
    result.layout = *request.results[0];
    plan = plan_winograd(operands, result, plain_epilogue(result), {{"B", {}}}, target);
    for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
    buffers.push_back(HostBuffer(result, symbols));
    tiles_ = evaluate(tiles, symbols);
  }
  int64_t tiles() const { return tiles_; }

  SymbolValues symbols;
  TemplateKernel plan;
  std::vector<HostBuffer> buffers;
  int64_t tiles_ = 0;
};

TEST_P(WinogradTemplate, EqualsTheSumOverPlacesAndChannels) {
  const auto& [c, level] = GetParam();
  if (!host_cpu_features().covers(parse_cpu_features(level)))
    GTEST_SKIP() << "this processor has no " << level;
  Built built(c, level);
  run_template(built.plan, built.symbols, built.buffers);
  for_each_index({c.images, c.columns, c.height, c.width}, [&](const std::vector<int64_t>& at) {
    const double bias = c.bias ? built.buffers[4].at({at[1]}) : 0;
    ASSERT_NEAR(built.buffers.back().at(at),
                winograd_expected_at(c, at, built.buffers[0], built.buffers[1]) + bias, 1e-3)
        << testing::PrintToString(at);
  });
}

double direct_at(const WinogradCase& c, const std::vector<int64_t>& at, const HostBuffer& image,
                 const HostBuffer& window) {
  double sum = 0;
  for_each_index({c.channels, 3, 3}, [&](const std::vector<int64_t>& k) {
    const int64_t y = at[2] + k[1] - 1, x = at[3] + k[2] - 1;
    if (y < 0 || x < 0 || y >= c.height || x >= c.width) return;
    sum += double{image.at({at[0], k[0], y, x})} * window.at({at[1], k[0], k[1], k[2]});
  });
  return sum;
}

// An element of one tile is NaN, as an infinite input makes it: that tile is computed from the image.
TEST_P(WinogradTemplate, ComputesWhatIsNotFiniteFromTheImage) {
  const auto& [c, level] = GetParam();
  if (!host_cpu_features().covers(parse_cpu_features(level)) || c.images == 0)
    GTEST_SKIP() << "no such processor, or no image";
  Built built(c, level);
  const int64_t tile = (built.tiles() - 1) / 2;
  for (int64_t place = 0; place < 16; ++place) built.buffers[0].set({place, tile, 0}, NAN);
  run_template(built.plan, built.symbols, built.buffers);
  for_each_index({c.images, c.columns, c.height, c.width}, [&](const std::vector<int64_t>& at) {
    if (tile_of(c, at) != tile) return;
    const double bias = c.bias ? built.buffers[4].at({at[1]}) : 0;
    ASSERT_NEAR(built.buffers.back().at(at), direct_at(c, at, built.buffers[2], built.buffers[3]) + bias,
                1e-3)
        << testing::PrintToString(at);
  });
}

const WinogradCase kWinogradCases[] = {
    {1, 32, 64, 8, 8, true},    // whole panels
    {2, 5, 33, 5, 7, false},    // odd sizes, blocks that span lines and images, a cut panel
    {1, 400, 16, 4, 40, true},  // sums in parts; lines of several blocks
    {3, 7, 20, 2, 2, false},    // one tile an image
    {1, 3, 17, 1, 5, true},     // half a tile high
    {0, 16, 16, 6, 6, false},   // no image
};

INSTANTIATE_TEST_SUITE_P(Shapes, WinogradTemplate,
                         testing::Combine(testing::ValuesIn(kWinogradCases),
                                          testing::Values("x86-64-v3", "x86-64-v4")),
                         template_test_name<WinogradCase>);

}  // namespace
}  // namespace ingot::core::cpu
