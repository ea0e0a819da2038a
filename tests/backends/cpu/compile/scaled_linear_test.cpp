// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/scaled_linear.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>

#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct ScaledCase {
  int64_t rows, columns, depth, block;
};
void PrintTo(const ScaledCase& c, std::ostream* out) {
  *out << sizes_text({c.rows, c.columns, c.depth, c.block});
}

struct ScaledForm {
  const char* name;
  DType weight, scale;
  std::optional<DType> zero_point;
  ops::ScaledLinear form;
};
void PrintTo(const ScaledForm& form, std::ostream* out) { *out << form.name; }

class ScaledLinearTemplate : public testing::TestWithParam<std::tuple<ScaledCase, ScaledForm, const char*>> {
};

// Element k of row n.
double number_at(const HostBuffer& weight, const ops::ScaledLinear& form, int64_t n, int64_t k) {
  if (!form.packed) return weight.at({n, k});
  const auto byte = static_cast<int>(weight.at({n, k / 2}));
  return (byte >> (4 * (k % 2))) & 15;
}

double expected_at(const ScaledCase& c, const ScaledForm& form, const std::vector<HostBuffer>& buffers,
                   int64_t m, int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < c.depth; ++k) {
    const double zero = form.zero_point ? buffers[ops::kZeroPoints].at({n, k / c.block}) : 0;
    const double centered = number_at(buffers[ops::kScaledWeight], form.form, n, k) -
                            static_cast<double>(form.form.offset) - zero;
    sum += buffers[ops::kScaledX].at({m, k}) * centered * buffers[ops::kScales].at({n, k / c.block});
  }
  return sum;
}

std::vector<TensorType> operand_types(const ScaledCase& c, const ScaledForm& form) {
  const Dim depth = form.form.packed ? c.depth / 2 : c.depth, blocks = c.depth / c.block;
  std::vector<TensorType> types{{DType::kF32, {Dim::symbol("M"), c.depth}, {}},
                                {form.weight, {c.columns, depth}, {}},
                                {form.scale, {c.columns, blocks}, {}}};
  if (form.zero_point) types.push_back({*form.zero_point, {c.columns, blocks}, {}});
  return types;
}

using Buffers = std::vector<HostBuffer>;

// The operands, with x changed by `change`, and the result; none if this processor cannot run the kernel.
Buffers run_case(const ScaledCase& c, const ScaledForm& form, const char* level,
                 const std::function<void(HostBuffer& x)>& change = nullptr) {
  Target target;
  target.device = level;
  std::vector<TensorType> operands = operand_types(c, form);
  const CpuFeatures features = features_of(target);
  EXPECT_TRUE(supports_scaled_linear(operands, form.form, features).yes);
  const LayoutRequest request = scaled_linear_layouts(operands, form.form, features);
  for (size_t i = 0; i < operands.size(); ++i) operands[i].layout = request.operands[i].value_or(Layout{});
  const TensorType result{DType::kF32, {Dim::symbol("M"), c.columns}, {}};
  const auto plan = plan_scaled_linear(operands, form.form, plain_epilogue(result), {{"M", {}}}, target);
  if (!host_cpu_features().covers(features)) {
    EXPECT_FALSE(plan.compile().code.empty());
    return {};
  }
  const SymbolValues symbols{{"M", c.rows}};
  Buffers buffers;
  for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
  if (change) change(buffers[ops::kScaledX]);
  buffers.push_back(HostBuffer(result, symbols));
  run_template(plan, symbols, buffers);
  return buffers;
}

TEST_P(ScaledLinearTemplate, EqualsTheSumOfProducts) {
  const auto& [c, form, level] = GetParam();
  const Buffers buffers = run_case(c, form, level);
  if (buffers.empty()) GTEST_SKIP() << "this processor has no " << level;
  const double largest = form.weight == DType::kE4M3 ? 1 : 200;
  for_each_index({c.rows, c.columns}, [&](const std::vector<int64_t>& at) {
    ASSERT_NEAR(buffers.back().at(at), expected_at(c, form, buffers, at[0], at[1]),
                largest * 1e-5 * std::sqrt(static_cast<double>(c.depth)))
        << "row " << at[0] << " column " << at[1];
  });
}

class ScaledLinearOfSpecialRows : public ScaledLinearTemplate {};

// Also where all elements of a column are the zero point, whose products with infinity are NaN.
TEST_P(ScaledLinearOfSpecialRows, KeepsInfinitiesAndNaN) {
  const auto& [c, form, level] = GetParam();
  const double inf = std::numeric_limits<double>::infinity();
  const Buffers buffers = run_case(c, form, level, [&, rows = c.rows](HostBuffer& x) {
    x.set({0, 3}, inf);
    x.set({rows - 1, 8}, -inf);
    if (rows > 2) x.set({1, 5}, std::nan(""));
  });
  if (buffers.empty()) GTEST_SKIP() << "this processor has no " << level;
  for_each_index({c.rows, c.columns}, [&](const std::vector<int64_t>& at) {
    const double expected = expected_at(c, form, buffers, at[0], at[1]), got = buffers.back().at(at);
    if (std::isfinite(expected)) return;
    ASSERT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected)
        << got << " instead of " << expected << " in row " << at[0] << " column " << at[1];
  });
}

// Each block of x has a magnitude of its own: tiny, zero, usual and huge ones in a row.
TEST_P(ScaledLinearOfSpecialRows, TakesBlocksOfAllMagnitudes) {
  const auto& [c, form, level] = GetParam();
  constexpr double kMagnitudes[] = {1, 0, 1e-38, 1e30, 3e-42, 1e-10};
  const Buffers buffers = run_case(c, form, level, [&, sizes = c](HostBuffer& x) {
    for_each_index({sizes.rows, sizes.depth}, [&](const std::vector<int64_t>& at) {
      x.set(at, x.at(at) * kMagnitudes[(at[0] + at[1] / sizes.block) % std::size(kMagnitudes)]);
    });
  });
  if (buffers.empty()) GTEST_SKIP() << "this processor has no " << level;
  for_each_index({c.rows, c.columns}, [&](const std::vector<int64_t>& at) {
    double largest = 1e-30;
    for (int64_t k = 0; k < c.depth; ++k)
      largest = std::max(largest, std::abs(buffers[ops::kScaledX].at({at[0], k})));
    ASSERT_NEAR(buffers.back().at(at), expected_at(c, form, buffers, at[0], at[1]),
                largest * 500 * 1e-6 * std::sqrt(static_cast<double>(c.depth)));
  });
}

// A tile has 6 or 8 rows.
constexpr ScaledCase kScaledCases[] = {
    {0, 16, 32, 32},   {1, 1, 32, 32},    {1, 50, 128, 64}, {2, 48, 96, 32},   {3, 33, 256, 128},
    {5, 16, 64, 16},   {6, 20, 64, 32},   {7, 96, 64, 64},  {17, 131, 96, 48}, {64, 40, 64, 32},
    {2, 64, 384, 192}, {4, 32, 288, 144}, {8, 33, 160, 80}};

const ScaledForm kScaledForms[] = {
    {"packed", DType::kU8, DType::kF32, std::nullopt, {true, 8}},
    {"packed_zeros", DType::kU8, DType::kBF16, DType::kI8, {true, 8}},
    {"packed_unsigned", DType::kU8, DType::kF16, DType::kU8, {true, 0}},
    {"packed_float_zeros", DType::kU8, DType::kF32, DType::kF32, {true, 0}},
    {"bytes", DType::kI8, DType::kF32, DType::kI32, {}},
    {"unsigned_bytes", DType::kU8, DType::kF32, DType::kU8, {}},
    {"e4m3", DType::kE4M3, DType::kF32, std::nullopt, {}},
};

std::string scaled_test_name(
    const testing::TestParamInfo<std::tuple<ScaledCase, ScaledForm, const char*>>& info) {
  const auto& [c, form, level] = info.param;
  return test_name(testing::PrintToString(c) + "_" + form.name, level);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ScaledLinearTemplate,
                         testing::Combine(testing::ValuesIn(kScaledCases), testing::ValuesIn(kScaledForms),
                                          testing::Values("x86-64-v3", "x86-64-v4", "x86-64-v4+vnni")),
                         scaled_test_name);

constexpr ScaledCase kSpecialCases[] = {{1, 50, 128, 64}, {2, 33, 384, 192}, {7, 20, 64, 16}};

INSTANTIATE_TEST_SUITE_P(Shapes, ScaledLinearOfSpecialRows,
                         testing::Combine(testing::ValuesIn(kSpecialCases), testing::ValuesIn(kScaledForms),
                                          testing::Values("x86-64-v3", "x86-64-v4", "x86-64-v4+vnni")),
                         scaled_test_name);

TEST(ScaledLinear, RejectsBlocksThatAreNotWholeVectors) {
  Target target;
  target.device = "x86-64-v3";
  const ScaledForm form = kScaledForms[0];
  const Fit fit =
      supports_scaled_linear(operand_types({1, 16, 24, 12}, form), form.form, features_of(target));
  EXPECT_FALSE(fit.yes);
  EXPECT_EQ(fit.reason, "blocks of 12 elements are not whole vectors");
}

}  // namespace
}  // namespace ingot::core::cpu
