// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/linear.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backends/cpu/compile/matrix_emulator.h"
#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct LinearCase {
  int64_t rows, columns, depth;
  bool bias;
};
void PrintTo(const LinearCase& c, std::ostream* out) {
  *out << sizes_text({c.rows, c.columns, c.depth}) << (c.bias ? " bias" : "");
}

class LinearTemplate : public testing::TestWithParam<std::tuple<LinearCase, Multiplication>> {};

// A weight [n, k] in the layout that the template asks for.
std::vector<double> expected_result(const LinearCase& c, const HostBuffer& input, const HostBuffer& weight,
                                    const HostBuffer* bias) {
  std::vector<double> result(c.rows * c.columns);
  for (int64_t m = 0; m < c.rows; ++m) {
    for (int64_t n = 0; n < c.columns; ++n) {
      double sum = bias ? bias->at({n}) : 0;
      for (int64_t k = 0; k < c.depth; ++k) sum += input.at({m, k}) * weight.at({n, k});
      result[m * c.columns + n] = sum;
    }
  }
  return result;
}

TEST_P(LinearTemplate, EqualsTheSumOfProducts) {
  const auto& [c, numbers] = GetParam();
  const auto& [level, x, w] = numbers;
  if (!test::can_run(level)) GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  Dim m = Dim::symbol("M");
  std::vector<TensorType> operands{{x, {m, c.depth}, {}}, {w, {c.columns, c.depth}, {}}};
  const bool has_bias = c.bias && is_floating(x);
  if (has_bias) operands.push_back({x, {c.columns}, {}});
  const bool fits = c.depth % numbers_a_step(x) == 0;
  ASSERT_EQ(supports_linear(operands, features_of(target)).yes, fits);
  if (!fits) return;
  LayoutRequest request = linear_layouts(operands, features_of(target));
  for (size_t i = 0; i < operands.size(); ++i) operands[i].layout = request.operands[i].value_or(Layout{});
  TensorType result{sum_dtype(x), {m, c.columns}, {}};
  SymbolValues symbols{{"M", c.rows}};
  std::vector<HostBuffer> buffers;
  for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
  auto expected = expected_result(c, buffers[0], buffers[1], has_bias ? &buffers[2] : nullptr);
  const double scale = share_of_error(x) * (w == DType::kI8 ? 100 : 1);
  for (const PanelTactic& tactic : tactics_to_try(linear_tactics(operands, features_of(target)), c.rows)) {
    const auto plan = plan_linear(operands, plain_epilogue(result), {{"M", {}}}, target, tactic);
    buffers.push_back(HostBuffer(result, symbols));
    run_template(plan, symbols, buffers);
    for (int64_t i = 0; i < c.rows * c.columns; ++i) {
      ASSERT_NEAR(buffers.back().at({i / c.columns, i % c.columns}), expected[i],
                  scale * 1e-5 * std::sqrt(c.depth) * 4)
          << "row " << i / c.columns << " column " << i % c.columns << ", " << plan.tactic;
    }
    buffers.pop_back();
  }
}

constexpr LinearCase kLinearCases[] = {{0, 48, 8, false},     {1, 1, 1, false},    {1, 48, 64, true},
                                       {2, 50, 33, true},     {3, 7, 5, false},    {5, 100, 17, true},
                                       {8, 96, 128, false},   {17, 131, 19, true}, {128, 64, 40, true},
                                       {33, 1000, 77, false}, {9, 32, 1, true},    {601, 16, 1024, false},
                                       {80, 70, 256, true}};

constexpr Multiplication kMultiplications[] = {
    {"x86-64-v3"},
    {"x86-64-v4"},
    {"x86-64-v3", DType::kF32, DType::kBF16},
    {"x86-64-v4", DType::kF32, DType::kBF16},
    {"x86-64-v3", DType::kF32, DType::kF16},
    {"x86-64-v4", DType::kF32, DType::kF16},
    {"x86-64-v3", DType::kF32, DType::kI8},
    {"x86-64-v4", DType::kF32, DType::kI8},
    {"x86-64-v3", DType::kF32, DType::kE4M3},
    {"x86-64-v4", DType::kF32, DType::kE4M3},
    {"x86-64-v3", DType::kF32, DType::kE5M2},
    {"x86-64-v4", DType::kF32, DType::kE5M2},
    {"x86-64-v4+vbmi", DType::kF32, DType::kE4M3},
    {"x86-64-v4+vbmi", DType::kF32, DType::kE5M2},
    kMultiplyDoubles,
    kMultiplyDoublesWide,
    kMultiplyPairs,
    kMultiplyPairsByMatrices,
    kMultiplyQuads,
    kMultiplyQuadsByMatrices,
    kMultiplyBytes,
    kMultiplyBytesWide,
};

INSTANTIATE_TEST_SUITE_P(Shapes, LinearTemplate,
                         testing::Combine(testing::ValuesIn(kLinearCases),
                                          testing::ValuesIn(kMultiplications)),
                         multiplication_test_name<LinearCase>);

// Each code of fp8 as a weight, for rows that convert what they load, and for more, which convert panels.
TEST(LinearOfSmallFloats, MultipliesEachCode) {
  constexpr int64_t kCodes = 256;
  for (const char* level : {"x86-64-v3", "x86-64-v4", "x86-64-v4+vbmi"}) {
    if (!test::can_run(level)) continue;
    Target target;
    target.device = level;
    for (const DType stored : {DType::kE4M3, DType::kE5M2}) {
      const auto value = [&](int64_t code) {
        const auto bits = static_cast<uint8_t>(code);
        return stored == DType::kE4M3 ? e4m3_to_float(bits) : e5m2_to_float(bits);
      };
      for (const int64_t rows : {1, 20}) {
        std::vector<TensorType> operands{{DType::kF32, {rows, 1}, {}}, {stored, {kCodes, 1}, {}}};
        operands[1].layout = *linear_layouts(operands, features_of(target)).operands[1];
        const TensorType result{DType::kF32, {rows, kCodes}, {}};
        std::vector<HostBuffer> buffers;
        for (const TensorType& type : operands) buffers.push_back(HostBuffer(type, {}));
        buffers.push_back(HostBuffer(result, {}));
        for (int64_t row = 0; row < rows; ++row) buffers[0].set({row, 0}, 2);
        for (int64_t code = 0; code < kCodes; ++code) buffers[1].set({code, 0}, value(code));
        run_template(plan_linear(operands, plain_epilogue(result), {}, target, {}), {}, buffers);
        for (int64_t i = 0; i < rows * kCodes; ++i) {
          const double found = buffers[2].at({i / kCodes, i % kCodes}), expected = 2 * value(i % kCodes);
          ASSERT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected)))
              << level << " " << name(stored) << " code " << i % kCodes << ": " << found << ", not "
              << expected;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ingot::core::cpu
