// SPDX-License-Identifier: Apache-2.0
// How kernels are spread over threads, at sizes that no operator sample has.
#include "backends/cuda/compile/kernel_text.h"

#include <fmt/core.h>
#include <gmock/gmock.h>

#include "support/error.h"
#include "tests/backends/cuda/run_kernels.h"
#include "tests/loops/kernels.h"

namespace ingot::core::cuda {
namespace {

using loops::Combine;
using loops::Kernel;
using loops::load;
using loops::test::buffer;
using loops::test::softmax_kernel;
using loops::test::symbol;
using test::Case;
using ::testing::HasSubstr;
using ::testing::Not;

// y[i] = sum of x[i, j] over j, or of x[j, i]
Kernel sum_kernel(const Dim& rows, const Dim& columns, bool down) {
  const Dim i = symbol("i"), j = symbol("j");
  Kernel kernel{.name = "sum"};
  kernel.buffers = {buffer("x", DType::kF32, down ? Shape{columns, rows} : Shape{rows, columns}),
                    buffer("y", DType::kF32, {rows}, loops::Access::kWrite)};
  kernel.parallel = {{"i", rows}};
  kernel.stages = {{.name = "y",
                    .reduce = {{"j", columns}},
                    .combine = Combine::kAdd,
                    .value = load(0, DType::kF32, down ? std::vector<Dim>{j, i} : std::vector<Dim>{i, j}),
                    .store = loops::Store{1, {i}}}};
  return kernel;
}

// y[i, j] = x[i, 0] op ... op x[i, j]
Kernel scan_kernel(const Dim& rows, const Dim& columns, Combine combine, DType dtype) {
  const Dim i = symbol("i"), j = symbol("j");
  Kernel kernel{.name = "scan"};
  kernel.buffers = {buffer("x", dtype, {rows, columns}),
                    buffer("y", dtype, {rows, columns}, loops::Access::kWrite)};
  kernel.parallel = {{"i", rows}};
  kernel.stages = {{.name = "y",
                    .loops = {{"j", columns}},
                    .combine = combine,
                    .scan = true,
                    .value = load(0, dtype, {i, j}),
                    .store = loops::Store{1, {i, j}}}};
  return kernel;
}

LaunchPlan plan_of(const Kernel& kernel) { return write_kernel(kernel, "k").plan; }

TEST(CudaPlan, RowsShareAWarpOrABlock) {
  EXPECT_EQ(plan_of(softmax_kernel(64, 128)).group, 32);
  EXPECT_EQ(plan_of(softmax_kernel(64, 4096)).group, 128);  // 32 elements of a thread in registers
  EXPECT_EQ(plan_of(softmax_kernel(64, 20000)).group, 256);
  EXPECT_EQ(plan_of(softmax_kernel(64, 8)).group, 1);
}

TEST(CudaPlan, NeighboursReadSideBySide) {
  EXPECT_EQ(plan_of(sum_kernel(64, 128, false)).group, 32);  // along the row: a warp per row
  EXPECT_EQ(plan_of(sum_kernel(64, 128, true)).group, 1);    // down the columns: a thread per column
}

TEST(CudaPlan, LongRowsGoToScratch) {
  EXPECT_TRUE(plan_of(softmax_kernel(4, 4096)).row.has_value());
  EXPECT_TRUE(plan_of(softmax_kernel(4, 10000)).rows_in_shared);
  EXPECT_FALSE(plan_of(softmax_kernel(4, 10000)).row.has_value());
  EXPECT_FALSE(plan_of(softmax_kernel(4, 100000)).rows_in_shared);
  EXPECT_FALSE(plan_of(softmax_kernel(symbol("R"), symbol("C"))).rows_in_shared);  // may be of any length
}

TEST(CudaText, UsesNarrowIndicesWhereTheyDo) {
  EXPECT_THAT(write_kernel(softmax_kernel(64, 128), "k").text, HasSubstr("typedef i32 idx"));
  EXPECT_THAT(write_kernel(softmax_kernel(1 << 20, 1 << 14), "k").text, HasSubstr("typedef i64 idx"));
  EXPECT_THAT(write_kernel(softmax_kernel(symbol("R"), symbol("C")), "k").text, HasSubstr("typedef i64 idx"));
}

TEST(CudaText, RefusesFourBitIntegers) {
  Kernel kernel{.name = "copy"};
  kernel.buffers = {buffer("x", DType::kU4, {8}), buffer("y", DType::kU8, {8}, loops::Access::kWrite)};
  kernel.parallel = {{"i", 8}};
  kernel.stages = {
      {.name = "y", .value = load(0, DType::kU4, {symbol("i")}), .store = loops::Store{1, {symbol("i")}}}};
  EXPECT_THROW(write_kernel(kernel, "k"), UnsupportedError);
}

// The same with the other number of threads a row, and with operands that are weights.
void add_other_cuts(std::vector<Case>& cases) {
  for (size_t i = 0, count = cases.size(); i < count; ++i) {
    Case other = cases[i];
    other.options.row = 1;
    for (const loops::Buffer& buffer : other.kernel.buffers)
      other.options.are_weights.push_back(buffer.access == loops::Access::kRead);
    cases.push_back(std::move(other));
  }
}

TEST(CudaKernels, RowsOfAllLengths) {
  std::vector<Case> cases;
  for (const int64_t columns : {1, 8, 31, 32, 33, 64, 77, 128, 771, 1000, 1025, 5000, 8192, 20000}) {
    cases.push_back({.kernel = softmax_kernel(7, columns), .symbols = {}, .operands = {}});
    cases.push_back({.kernel = sum_kernel(7, columns, false), .symbols = {}, .operands = {}});
    cases.push_back({.kernel = sum_kernel(70, columns, true), .symbols = {}, .operands = {}});
    cases.push_back({.kernel = softmax_kernel(symbol("R"), symbol("C")),
                     .symbols = {{"R", 3}, {"C", columns}},
                     .operands = {}});
  }
  add_other_cuts(cases);
  test::expect_all_same(std::move(cases), {.relative = 1e-5, .low = 0.5});  // sums do not cancel
}

TEST(CudaKernels, MorePointsThanGroups) {
  std::vector<Case> cases;
  cases.push_back({.kernel = softmax_kernel(20000, 40), .symbols = {}, .operands = {}});
  cases.push_back({.kernel = loops::test::function_kernel(loops::functions::exp, DType::kF32, {3, 700001}),
                   .symbols = {},
                   .operands = {}});
  test::expect_all_same(std::move(cases));
}

TEST(CudaKernels, Scans) {
  std::vector<Case> cases;
  for (const int64_t columns : {1, 31, 32, 33, 500}) {
    for (const DType dtype : {DType::kF32, DType::kI64, DType::kI8, DType::kF64}) {
      cases.push_back(
          {.kernel = scan_kernel(5, columns, Combine::kAdd, dtype), .symbols = {}, .operands = {}});
      cases.push_back(
          {.kernel = scan_kernel(5, columns, Combine::kMaximum, dtype), .symbols = {}, .operands = {}});
    }
  }
  test::expect_all_same(std::move(cases), {.relative = 1e-5, .low = 0.5});
}

// A load in the arm that is not taken is not made: its address may be anywhere.
TEST(CudaKernels, GuardedLoads) {
  constexpr int64_t kCount = 1 << 20, kFar = 1 << 10;
  const Dim i = symbol("i");
  const auto number = [](int64_t value) { return loops::integer_constant(DType::kI64, value); };
  const auto real = [](double value) { return loops::constant(DType::kF32, value); };
  Kernel kernel{.name = "pad"};
  kernel.buffers = {buffer("x", DType::kF32, {4}), buffer("y", DType::kF32, {kCount}, loops::Access::kWrite)};
  kernel.parallel = {{"i", kCount}};
  const loops::Expr first = binary(loops::Binary::kEqual, loops::index_value(i), number(0));
  const loops::Expr few = binary(loops::Binary::kLess, loops::index_value(i), number(4));
  kernel.stages = {
      {.name = "y",
       .value = select(first, load(0, DType::kF32, {i * Dim(kFar)}), select(few, real(1), real(2))),
       .store = loops::Store{1, {i}}}};
  EXPECT_THAT(write_kernel(kernel, "k").text, HasSubstr("} else {"));
  test::expect_all_same({{.kernel = kernel, .symbols = {}, .operands = {}}});
}

TEST(CudaText, ComputesBothArmsWithoutLoads) {
  const Kernel kernel = loops::test::function_kernel(loops::functions::exp, DType::kF32, {8});
  EXPECT_THAT(write_kernel(kernel, "k").text, Not(HasSubstr("} else {")));
}

// Each symbol depends on the one before, and the first on the reduction: the writer asks for each once.
TEST(CudaText, FollowsLongChainsOfSymbols) {
  Kernel kernel = sum_kernel(4, 8, false);
  loops::Stage& stage = kernel.stages[0];
  Dim last = symbol("j");
  for (int k = 0; k < 100; ++k) {
    stage.bindings.push_back({fmt::format("$k{}", k), loops::index_value(last), 8});
    last = symbol(stage.bindings.back().symbol);
  }
  stage.value = load(0, DType::kF32, {symbol("i"), last});
  EXPECT_LT(write_kernel(kernel, "k").text.size(), 60000u);
  test::expect_all_same({{.kernel = kernel, .symbols = {}, .operands = {}}});
}

// Two arms that share a chain of selects over loads: the text stays short.
TEST(CudaText, SharesWhatBothArmsNeed) {
  const Dim i = symbol("i");
  Kernel kernel = loops::test::unary_kernel(loops::Unary::kNegate, DType::kF32, {8});
  loops::Expr value = kernel.stages[0].value;
  for (int64_t k = 0; k < 40; ++k) {
    const loops::Expr chosen = binary(loops::Binary::kLess, loops::index_value(symbol("i0")),
                                      loops::integer_constant(DType::kI64, k));
    value = select(chosen, binary(loops::Binary::kAdd, value, value), unary(loops::Unary::kAbsolute, value));
  }
  kernel.stages[0].value = value;
  EXPECT_LT(write_kernel(kernel, "k").text.size(), 40000u);
  test::expect_all_same({{.kernel = kernel, .symbols = {}, .operands = {}}});
}

}  // namespace
}  // namespace ingot::core::cuda
