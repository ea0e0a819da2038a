// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/matmul.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/backends/cpu/compile/matrix_emulator.h"
#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct MatmulCase {
  std::vector<int64_t> a, b;
  bool b_is_transposed = false;  // in memory
  bool symbolic = false;         // the last dims of a and b
};
void PrintTo(const MatmulCase& c, std::ostream* out) {
  *out << sizes_text(c.a) << " by " << sizes_text(c.b) << (c.b_is_transposed ? " transposed" : "")
       << (c.symbolic ? " symbolic" : "");
}

class MatmulTemplate : public testing::TestWithParam<std::tuple<MatmulCase, Multiplication>> {};

std::vector<TensorType> operand_types(const MatmulCase& c) {
  std::vector<TensorType> types{{DType::kF32, Shape(c.a.begin(), c.a.end()), {}},
                                {DType::kF32, Shape(c.b.begin(), c.b.end()), {}}};
  if (c.symbolic) {
    types[0].shape.back() = types[1].shape[c.b.size() - 2] = Dim::symbol("K");
    types[1].shape.back() = Dim::symbol("N");
  }
  if (c.b_is_transposed) {
    std::vector<int> order(c.b.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    types[1].layout = Layout::permutation(order);
  }
  return types;
}

std::vector<int64_t> result_shape(const MatmulCase& c) {
  std::vector<int64_t> shape(std::max(c.a.size(), c.b.size()), 1);
  for (const auto* operand : {&c.a, &c.b}) {
    size_t shift = shape.size() - operand->size();
    for (size_t i = 0; i + 2 < operand->size(); ++i)
      shape[i + shift] = std::max(shape[i + shift], (*operand)[i]);
  }
  shape[shape.size() - 2] = c.a[c.a.size() - 2];
  shape.back() = c.b.back();
  return shape;
}

double expected_at(const MatmulCase& c, const std::vector<HostBuffer>& operands,
                   const std::vector<int64_t>& place) {
  auto at = [&](size_t i, const std::vector<int64_t>& shape, int64_t row, int64_t column) {
    std::vector<int64_t> index;
    size_t shift = place.size() - shape.size();
    for (size_t dim = 0; dim + 2 < shape.size(); ++dim)
      index.push_back(shape[dim] == 1 ? 0 : place[dim + shift]);
    index.insert(index.end(), {row, column});
    return operands[i].at(index);
  };
  double sum = 0;
  for (int64_t k = 0; k < c.a.back(); ++k) {
    sum += at(0, c.a, place[place.size() - 2], k) * at(1, c.b, k, place.back());
  }
  return sum;
}

TEST_P(MatmulTemplate, EqualsTheSumOfProducts) {
  const auto& [c, numbers] = GetParam();
  const auto& [level, dtype, dtype_of_b] = numbers;
  if (!test::can_run(level)) GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  std::vector<TensorType> operands = operand_types(c);
  operands[0].dtype = dtype;
  operands[1].dtype = dtype_of_b;
  const bool fits = operands[0].shape.back().constant().value_or(1) % numbers_a_step(dtype) == 0;
  ASSERT_EQ(supports_matmul(operands, features_of(target)).yes, fits);
  if (!fits) return;
  LayoutRequest request = matmul_layouts(operands);
  EXPECT_FALSE(request.operands[0] || request.operands[1]);  // all of them are taken as they are
  std::vector<int64_t> shape = result_shape(c);
  TensorType result{sum_dtype(dtype), Shape(shape.begin(), shape.end()), {}};
  result.shape.back() = operands[1].shape.back();
  SymbolTable table{{"K", {}}, {"N", {}}};
  TemplateKernel plan = plan_matmul(operands, result, plain_epilogue(result), table, target);

  SymbolValues symbols{{"K", c.a.back()}, {"N", c.b.back()}};
  std::vector<HostBuffer> buffers;
  for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
  buffers.push_back(HostBuffer(result, symbols));
  run_template(plan, symbols, buffers);
  for_each_index(shape, [&](const std::vector<int64_t>& place) {
    ASSERT_NEAR(buffers.back().at(place), expected_at(c, buffers, place), 1e-5 * share_of_error(dtype))
        << testing::PrintToString(place);
  });
}

const MatmulCase kMatmulCases[] = {{{3, 4}, {4, 5}},
                                   {{2, 3, 33, 17}, {2, 3, 17, 50}},
                                   {{2, 3, 33, 17}, {2, 3, 17, 50}, true},
                                   {{2, 1, 130, 9}, {3, 9, 48}, false, true},
                                   {{4, 1, 20}, {4, 20, 70}, true, true},
                                   {{5, 7}, {2, 7, 1}},
                                   {{2, 3, 0}, {2, 0, 4}},
                                   {{2, 0, 3}, {2, 3, 4}},
                                   {{2, 48, 64}, {2, 64, 40}},
                                   {{2, 3, 33, 20}, {2, 3, 20, 50}, true},
                                   {{3, 5, 12}, {12, 131}},
                                   {{3, 145, 42}, {3, 42, 33}, false, true}};

INSTANTIATE_TEST_SUITE_P(
    Shapes, MatmulTemplate,
    testing::Combine(testing::ValuesIn(kMatmulCases),
                     testing::Values(Multiplication{"x86-64-v3"}, Multiplication{"x86-64-v4"},
                                     kMultiplyDoubles, kMultiplyDoublesWide, kMultiplyPairs,
                                     kMultiplyPairsByMatrices, kMultiplyQuads, kMultiplyQuadsByMatrices,
                                     kMultiplyBytes, kMultiplyBytesWide)),
    multiplication_test_name<MatmulCase>);

}  // namespace
}  // namespace ingot::core::cpu
