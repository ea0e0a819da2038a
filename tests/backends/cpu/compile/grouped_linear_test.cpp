// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/grouped_linear.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backends/cpu/compile/matrix_emulator.h"
#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct GroupedCase {
  int64_t rows, columns, depth;
  std::vector<int64_t> ends;
  DType index = DType::kI32;
};
void PrintTo(const GroupedCase& c, std::ostream* out) {
  *out << sizes_text({c.rows, c.columns, c.depth}) << " ends " << sizes_text(c.ends) << " " << name(c.index);
}

// The first group that ends behind the row, or -1.
int64_t group_of(const GroupedCase& c, int64_t row) {
  for (size_t group = 0; group < c.ends.size(); ++group)
    if (c.ends[group] > row) return static_cast<int64_t>(group);
  return -1;
}

double expected_product(const GroupedCase& c, const std::vector<HostBuffer>& buffers, int64_t row,
                        int64_t column) {
  const int64_t group = group_of(c, row);
  double sum = 0;
  for (int64_t k = 0; group >= 0 && k < c.depth; ++k)
    sum += buffers[0].at({row, k}) * buffers[1].at({group, column, k});
  return sum;
}

class GroupedLinearTemplate : public ::testing::TestWithParam<std::tuple<GroupedCase, Multiplication>> {};

TEST_P(GroupedLinearTemplate, MultipliesEachRowByTheWeightOfItsGroup) {
  const auto& [c, numbers] = GetParam();
  const auto& [level, x, w] = numbers;
  if (!test::can_run(level)) GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  const Dim s = Dim::symbol("S");
  const auto groups = static_cast<int64_t>(c.ends.size());
  std::vector<TensorType> operands{
      {x, {s, c.depth}, {}}, {w, {groups, c.columns, c.depth}, {}}, {c.index, {groups}, {}}};
  const bool fits = c.depth % numbers_a_step(x) == 0;
  ASSERT_EQ(supports_grouped_linear(operands, features_of(target)).yes, fits);
  if (!fits) return;
  const LayoutRequest request = grouped_linear_layouts(operands, features_of(target));
  for (size_t i = 0; i < operands.size(); ++i) operands[i].layout = request.operands[i].value_or(Layout{});
  const TensorType result{sum_dtype(x), {s, c.columns}, {}};
  const SymbolValues symbols{{"S", c.rows}};
  std::vector<HostBuffer> buffers{random_buffer(operands[0], symbols, 1),
                                  random_buffer(operands[1], symbols, 2), HostBuffer(operands[2], symbols),
                                  HostBuffer(result, symbols)};
  for (int64_t i = 0; i < groups; ++i)
    buffers[2].set({i}, static_cast<float>(c.ends[static_cast<size_t>(i)]));
  run_template(plan_grouped_linear(operands, plain_epilogue(result), {{"S", {}}}, target), symbols, buffers);
  const double scale = share_of_error(x) * (w == DType::kI8 ? 100 : 1);
  for_each_index({c.rows, c.columns}, [&](const std::vector<int64_t>& at) {
    ASSERT_NEAR(buffers[3].at(at), expected_product(c, buffers, at[0], at[1]),
                scale * 4e-5 * std::sqrt(static_cast<double>(c.depth)))
        << "row " << at[0] << " column " << at[1];
  });
}

// Groups of one row below, at and above a tile; empty ones; rows behind all; ends that torch's sort never
// makes, which must stay inside the tensors.
const GroupedCase kGroupedCases[] = {
    {1, 1, 1, {1}},
    {0, 48, 8, {0, 0}},
    {33, 50, 34, {5, 5, 11, 18, 33}, DType::kI64},
    {20, 16, 1025, {20, 20, 20}},
    {20, 24, 8, {0, 0, 20}},
    {14, 131, 18, {3, 7}},
    {9, 32, 6, {0, 0, 0}},
    {601, 16, 1024, {7, 590, 601}},
    {10, 8, 4, {4, 99}, DType::kI64},
    {10, 8, 4, {8, 2, 6, 9}},
    {10, 8, 4, {-3, 5, -1}},
};

constexpr Multiplication kGroupedMultiplications[] = {
    {"x86-64-v3"},
    {"x86-64-v4"},
    {"x86-64-v3", DType::kF32, DType::kBF16},
    {"x86-64-v4", DType::kF32, DType::kBF16},
    {"x86-64-v3", DType::kF32, DType::kF16},
    {"x86-64-v4", DType::kF32, DType::kF16},
    {"x86-64-v3", DType::kF32, DType::kI8},
    kMultiplyDoubles,
    kMultiplyDoublesWide,
    kMultiplyPairs,
    kMultiplyPairsByMatrices,
};

INSTANTIATE_TEST_SUITE_P(Shapes, GroupedLinearTemplate,
                         ::testing::Combine(::testing::ValuesIn(kGroupedCases),
                                            ::testing::ValuesIn(kGroupedMultiplications)),
                         multiplication_test_name<GroupedCase>);

}  // namespace
}  // namespace ingot::core::cpu
