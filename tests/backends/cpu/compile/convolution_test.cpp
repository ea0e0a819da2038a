// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/convolution.h"
#include "backends/cpu/compile/templates/depthwise.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/convolution.h"
#include "tests/backends/cpu/compile/matrix_emulator.h"
#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct ConvolutionCase {
  std::vector<int64_t> input, weight;
  int64_t stride, padding, dilation, groups;
  bool bias;
};
void PrintTo(const ConvolutionCase& c, std::ostream* out) {
  *out << sizes_text(c.input) << " by " << sizes_text(c.weight) << " stride " << c.stride << " padding "
       << c.padding << " dilation " << c.dilation << " groups " << c.groups << (c.bias ? " bias" : "");
}

class ConvolutionTemplate : public testing::TestWithParam<std::tuple<ConvolutionCase, Multiplication>> {};

ops::Convolution attributes_of(const ConvolutionCase& c) {
  size_t spatial = c.input.size() - 2;
  auto all = [&](int64_t value) { return std::vector<int64_t>(spatial, value); };
  return {all(c.stride), all(c.padding), all(c.dilation), c.groups};
}

std::vector<int64_t> convolution_result_shape(const ConvolutionCase& c) {
  std::vector<int64_t> shape{c.input[0], c.weight[0]};
  for (size_t dim = 2; dim < c.input.size(); ++dim) {
    shape.push_back((c.input[dim] + 2 * c.padding - c.dilation * (c.weight[dim] - 1) - 1) / c.stride + 1);
  }
  return shape;
}

// Pixels outside of the image are `outside`.
double expected_at(const ConvolutionCase& c, const std::vector<int64_t>& place, const HostBuffer& input,
                   const HostBuffer& weight, int64_t outside) {
  double sum = 0;
  int64_t group_channels = c.weight[1], group = place[1] / (c.weight[0] / c.groups);
  std::vector<int64_t> taps(c.weight.begin() + 1, c.weight.end());
  for_each_index(taps, [&](const std::vector<int64_t>& tap) {
    std::vector<int64_t> from{place[0], group * group_channels + tap[0]}, at{place[1], tap[0]};
    bool is_inside = true;
    for (size_t dim = 2; dim < c.input.size(); ++dim) {
      from.push_back(place[dim] * c.stride - c.padding + tap[dim - 1] * c.dilation);
      at.push_back(tap[dim - 1]);
      is_inside = is_inside && from[dim] >= 0 && from[dim] < c.input[dim];
    }
    const double value = is_inside ? input.at(from) : static_cast<double>(outside);
    sum += value * weight.at(at);
  });
  return sum;
}

bool is_in_templates(const ConvolutionCase& c, DType x, CpuFeatures features) {
  const bool is_depthwise = c.groups > 1 && c.weight[1] <= 8 && c.weight[0] == c.input[1];
  if (x == DType::kF64) return !is_depthwise;
  if (x == DType::kU8 && is_depthwise)
    return features.has(CpuFeature::kAvx512Vnni) && c.weight[1] == 1 && c.input.size() == 4;
  const int group = numbers_a_step(x);
  return group == 1 || (c.input[1] % group == 0 && c.groups == 1);
}

// With batches of any size, and lines of pixels of any length if `is_any_length`.
void check_all_tactics(const ConvolutionCase& c, const Multiplication& numbers, bool is_any_length) {
  const auto& [level, x, w] = numbers;
  Target target;
  target.device = level;
  auto type_of = [](DType dtype, const std::vector<int64_t>& shape) {
    return TensorType{dtype, Shape(shape.begin(), shape.end()), {}};
  };
  std::vector<TensorType> operands{type_of(x, c.input), type_of(w, c.weight)};
  operands[0].shape[0] = Dim::symbol("B");
  const bool has_bias = c.bias && is_floating(x);
  if (has_bias) operands.push_back(type_of(x, {c.weight[0]}));
  ops::Convolution attributes = attributes_of(c);
  const int64_t outside = x == DType::kU8 ? 7 : 0;
  const bool fits = is_in_templates(c, x, features_of(target));
  ASSERT_EQ(supports_convolution(operands, attributes, features_of(target)).yes, fits);
  if (!fits) return;
  LayoutRequest request = convolution_layouts(operands, attributes, features_of(target));
  for (size_t i = 0; i < operands.size(); ++i) operands[i].layout = *request.operands[i];
  TensorType result = type_of(sum_dtype(x), convolution_result_shape(c));
  result.shape[0] = Dim::symbol("B");
  result.layout = *request.results[0];
  SymbolValues symbols{{"B", c.input[0]}};
  SymbolTable table{{"B", {}}};
  if (is_any_length) {
    const int64_t outer = 2 * c.padding - c.dilation * (c.weight.back() - 1) - 1;
    operands[0].shape.back() = Dim::symbol("W");
    result.shape.back() = floor_divide(Dim::symbol("W") + outer, c.stride) + 1;
    symbols["W"] = c.input.back();
    table["W"] = {};
  }
  std::vector<HostBuffer> buffers;
  for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
  const auto tactics = convolution_tactics(operands, attributes, features_of(target));
  for (const PanelTactic& tactic : tactics_to_try(tactics, c.input[2])) {
    const TemplateKernel plan = plan_convolution(operands, result, attributes, outside,
                                                 plain_epilogue(result), table, target, tactic);
    buffers.push_back(HostBuffer(result, symbols));
    run_template(plan, symbols, buffers);
    for_each_index(convolution_result_shape(c), [&](const std::vector<int64_t>& place) {
      const double sum = expected_at(c, place, buffers[0], buffers[1], outside);
      const double expected = sum + (has_bias ? buffers[2].at({place[1]}) : 0);
      ASSERT_NEAR(buffers.back().at(place), expected, 1e-4 * share_of_error(x))
          << testing::PrintToString(place) << ", " << plan.tactic;
    });
    buffers.pop_back();
  }
}

TEST_P(ConvolutionTemplate, EqualsTheSumOverTheWindow) {
  const auto& [c, numbers] = GetParam();
  if (!test::can_run(numbers.level)) GTEST_SKIP() << "this processor has no " << numbers.level;
  check_all_tactics(c, numbers, false);
  check_all_tactics(c, numbers, true);
}

const ConvolutionCase kConvolutionCases[] = {
    {{1, 16, 5, 5}, {48, 16, 1, 1}, 1, 0, 1, 1, true},      // plain rows
    {{2, 32, 6, 7}, {20, 32, 1, 1}, 2, 0, 1, 1, false},     // 1x1 with a stride
    {{1, 33, 6, 5}, {18, 33, 3, 3}, 1, 1, 1, 1, true},      // a tap at a time
    {{2, 40, 9, 8}, {33, 40, 3, 3}, 2, 1, 2, 1, false},     // stride and dilation
    {{1, 3, 17, 19}, {24, 3, 7, 7}, 2, 3, 1, 1, true},      // few channels: whole rows of the window
    {{2, 3, 16, 16}, {16, 3, 4, 4}, 4, 0, 1, 1, true},      // patches
    {{1, 4, 7, 7}, {5, 4, 3, 3}, 1, 2, 2, 1, false},        // few channels and dilation
    {{2, 12, 7, 6}, {24, 4, 3, 3}, 1, 1, 1, 3, true},       // groups
    {{1, 8, 5, 5}, {12, 2, 3, 3}, 1, 1, 1, 4, false},       // groups of an odd number of columns
    {{2, 37, 9, 6}, {37, 1, 3, 3}, 1, 1, 1, 37, true},      // depthwise
    {{1, 300, 5, 5}, {300, 1, 3, 3}, 2, 0, 1, 300, false},  // in several chunks
    {{1, 4, 7, 8}, {4, 1, 5, 5}, 1, 2, 1, 4, true},         // of few channels: no whole rows of the window
    {{2, 40, 9, 19}, {40, 1, 7, 7}, 1, 3, 1, 40, true},     // a wide window, rows of several tiles
    {{2, 150, 6, 9}, {150, 1, 5, 2}, 1, 1, 1, 150, false},  // more than four rows of the window
    {{1, 9, 20, 30}, {9, 1, 3, 11}, 2, 1, 2, 9, true},      // a wider one with stride and dilation
    {{2, 24, 7, 18}, {24, 4, 3, 3}, 1, 1, 1, 6, true},      // groups of 4: several in a vector
    {{1, 22, 9, 7}, {22, 2, 3, 5}, 2, 2, 2, 11, false},     // groups of 2, and part of a vector
    {{1, 16, 5, 9}, {16, 8, 3, 3}, 1, 1, 1, 2, true},       // groups of 8: a vector each
    {{1, 32, 5, 9}, {32, 16, 3, 3}, 1, 1, 1, 2, true},      // groups of 16: panels
    {{2, 12, 21}, {12, 4, 5}, 1, 2, 1, 3, true},            // groups along one spatial dim
    {{1, 8, 4, 5, 9}, {8, 1, 3, 3, 3}, 1, 1, 1, 8, true},   // and along three
    {{2, 6, 11}, {10, 6, 5}, 1, 2, 1, 1, true},             // one spatial dim
    {{1, 3, 4, 5, 6}, {7, 3, 3, 3, 3}, 1, 1, 1, 1, true},   // three
    {{0, 16, 5, 5}, {16, 16, 3, 3}, 1, 1, 1, 1, true},      // no image
    {{1, 8, 9, 11}, {20, 8, 5, 3}, 2, 2, 1, 1, true},       // whole rows of the window, in fours of channels
    {{2, 64, 7, 9}, {50, 64, 3, 3}, 2, 1, 1, 1, true},      // taps, in fours
    {{3, 36, 3, 35}, {9, 36, 3, 3}, 1, 1, 1, 1, true},  // lines longer than tiles, which begin in any row of
                                                        // one
    {{2, 32, 5, 77}, {17, 32, 3, 3}, 2, 3, 2, 1, false},      // with stride and dilation
    {{2, 64, 2, 33}, {32, 32, 1, 3}, 1, 1, 1, 2, true},       // in groups
    {{2, 32, 39}, {10, 32, 5}, 1, 2, 1, 1, true},             // one spatial dim
    {{2, 32, 2, 1, 13}, {9, 32, 2, 2, 3}, 1, 1, 1, 1, true},  // three, of several images in a tile
};

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvolutionTemplate,
    testing::Combine(testing::ValuesIn(kConvolutionCases),
                     testing::Values(Multiplication{"x86-64-v3"}, Multiplication{"x86-64-v4"},
                                     kMultiplyDoubles, kMultiplyDoublesWide, kMultiplyPairs,
                                     kMultiplyPairsByMatrices, kMultiplyQuads, kMultiplyQuadsByMatrices,
                                     kMultiplyBytes, kMultiplyBytesWide)),
    multiplication_test_name<ConvolutionCase>);

}  // namespace
}  // namespace ingot::core::cpu
