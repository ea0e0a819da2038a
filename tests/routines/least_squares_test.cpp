// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>

#include "routines/routine_table.h"

namespace ingot::core {
namespace {

using Vector = std::vector<double>;

std::span<double> elements_of(const Tensor& tensor) {
  return {reinterpret_cast<double*>(tensor.data.get()), static_cast<size_t>(tensor.elements())};
}

struct System {
  int64_t rows, columns;
  std::vector<Tensor> inputs;
};

// Of `parts` tensors for a, and as many for b with two columns.
System random_system(int64_t rows, int64_t columns, size_t parts) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> values(-1, 1);
  System made{rows, columns, {}};
  for (size_t i = 0; i < 2 * parts; ++i) {
    const Tensor tensor = make_tensor(DType::kF64, {rows, i < parts ? columns : 2});
    for (double& value : elements_of(tensor)) value = values(random);
    made.inputs.push_back(tensor);
  }
  return made;
}

// The squared lengths of both columns of a x - b.
Vector residuals(const System& system, const char* driver) {
  const size_t parts = system.inputs.size() / 2;
  const bool has_values = std::string_view(driver) == "gelsd" || std::string_view(driver) == "gelss";
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < parts; ++i) outputs.push_back(make_tensor(DType::kF64, {system.columns, 2}));
  outputs.push_back(make_tensor(DType::kF64, {2}));
  outputs.push_back(make_tensor(DType::kI32, {}));
  if (has_values) outputs.push_back(make_tensor(DType::kF64, {std::min(system.rows, system.columns)}));
  std::vector<TensorView> from, to;
  for (const Tensor& input : system.inputs) from.push_back(input.view());
  for (const Tensor& output : outputs) to.push_back(output.view());
  const NamedValues attributes = {{"driver", std::string(driver)}, {"has_rcond", false}, {"rcond", 0.0}};
  find_routine(parts == 1 ? "least_squares" : "complex_least_squares")
      ->run({.inputs = from, .outputs = to, .attributes = attributes});
  const auto found = elements_of(outputs[parts]);
  return {found.begin(), found.end()};
}

class Residuals : public ::testing::TestWithParam<const char*> {};

// Another order of operations, as on another processor, would change every digit of what rounding leaves.
TEST_P(Residuals, AreZeroWhereEveryRightSideIsReached) {
  for (const size_t parts : {1, 2})
    for (const int64_t columns : {4, 5, 9})
      EXPECT_EQ(residuals(random_system(4, columns, parts), GetParam()), (Vector{0, 0}));
}
TEST_P(Residuals, AreNotWhereThereAreMoreRows) {
  for (const size_t parts : {1, 2})
    for (const double length : residuals(random_system(9, 4, parts), GetParam())) EXPECT_GT(length, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Drivers, Residuals, ::testing::Values("gels", "gelsy", "gelsd", "gelss"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace ingot::core
