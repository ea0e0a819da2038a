// SPDX-License-Identifier: Apache-2.0
// Branches around rare arguments of functions: results do not depend on what the neighbours of an element
// are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/backends/cpu/compile/special_values.h"
#include "tests/loops/kernels.h"

namespace ingot::core::cpu {
namespace {

using loops::Access;
using loops::Expr;
using loops::Kernel;
using loops::test::buffer;
using loops::test::symbol;

constexpr int64_t kCount = 331;  // whole vectors and a tail

// Special values, each among usual ones.
std::vector<double> mixed_values(DType dtype) {
  const std::vector<double> special = test::special_values(dtype);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> usual(0.1, 0.9);
  std::vector<double> values;
  for (size_t i = 0; i < kCount; ++i)
    values.push_back(i % 5 == 2 ? special[i / 5 % special.size()] : usual(random));
  return values;
}

Tensor tensor_of(DType dtype, const std::vector<double>& values) {
  Tensor tensor = make_tensor(dtype, {kCount});
  for (int64_t i = 0; i < kCount; ++i) write_double(tensor.view(), {&i, 1}, values[static_cast<size_t>(i)]);
  return tensor;
}

std::vector<double> results_of(const test::CompiledKernel& kernel, DType dtype,
                               const std::vector<double>& values) {
  const std::vector<Tensor> buffers{tensor_of(dtype, values), make_tensor(dtype, {kCount})};
  EXPECT_EQ(kernel.run(buffers), 0);
  std::vector<double> results;
  for (int64_t i = 0; i < kCount; ++i) results.push_back(read_double(buffers[1].view(), {&i, 1}));
  return results;
}

void expect_independent(const loops::Function& function, DType dtype, CpuFeatures features) {
  const test::CompiledKernel kernel(loops::test::function_kernel(function, dtype, {kCount}), features);
  const std::vector<double> values = mixed_values(dtype);
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [](size_t i) { return i % 5 != 2; });  // special values side by side
  std::vector<double> moved;
  for (const size_t i : order) moved.push_back(values[i]);
  const std::vector<double> mixed = results_of(kernel, dtype, values),
                            sorted = results_of(kernel, dtype, moved);
  for (size_t k = 0; k < order.size(); ++k) {
    const double a = mixed[order[k]], b = sorted[k];
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
        << function.name << "(" << moved[k] << ") on " << to_string(features) << ": " << a << ", " << b;
  }
}

TEST(RareArms, ResultsDoNotDependOnNeighbours) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16}) {
    for (const loops::Function* function : loops::all_functions()) {
      for (const CpuFeatures features : test::targets()) expect_independent(*function, dtype, features);
    }
  }
}

// z[i, j] = sin(x[i]) y[j]: the function is computed before the row, with its branch.
TEST(RareArms, AreHoistedWithTheirBranch) {
  const Dim i = symbol("i"), j = symbol("j"), n = symbol("N");
  for (const DType dtype : {DType::kF32, DType::kF64}) {
    const Expr angle = call(loops::functions::sin, loops::load(0, dtype, {i}));
    Kernel kernel{.name = "outer", .parallel = {{"i", kCount}}};
    kernel.buffers = {buffer("x", dtype, {kCount}), buffer("y", dtype, {n}),
                      buffer("z", dtype, {kCount, n}, Access::kWrite)};
    kernel.stages = {{.name = "z",
                      .loops = {{"j", n}},
                      .value = binary(loops::Binary::kMultiply, angle, loops::load(1, dtype, {j})),
                      .store = loops::Store{2, {i, j}}}};
    test::expect_same(kernel, {{"N", 40}}, {.relative = 2e-6}, {tensor_of(dtype, mixed_values(dtype))});
  }
}

}  // namespace
}  // namespace ingot::core::cpu
