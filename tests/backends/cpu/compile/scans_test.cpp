// SPDX-License-Identifier: Apache-2.0
// Running sums, products and extremes along rows on both sides of whole vectors.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/backends/cpu/compile/special_values.h"
#include "tests/loops/kernels.h"

namespace ingot::core::cpu {
namespace {

constexpr std::string_view kScans[] = {"cumulative_sum", "cumulative_product", "cumulative_maximum",
                                       "cumulative_minimum"};

loops::Kernel scan_kernel(std::string_view op, std::string_view dtype, std::string_view columns) {
  const auto size = columns == "N" ? "N in 1..999" : std::string(columns);
  const std::string text =
      fmt::format("graph g(%x: {1}[5,{3}]) {{\n %y = {0}(%x) {{axis=1}} : {1}[5,{2}]\n return %y\n}}", op,
                  dtype, columns, size);
  const Graph graph = parse_graph(text, ops::find_op);
  const Node& node = *graph.nodes().back();
  loops::Kernel kernel = node.op->lower(node);
  kernel.symbols = graph.symbols;
  return kernel;
}

TEST(Scans, OfAnyLayout) {
  const Dim i = loops::test::symbol("i"), j = loops::test::symbol("j");
  for (const bool swapped : {false, true}) {
    loops::Kernel kernel{.name = "scan", .parallel = {{"i", loops::test::symbol("N")}}};
    kernel.buffers = {
        loops::test::buffer("x", DType::kF32, {loops::test::symbol("N"), 40}),
        loops::test::buffer("y", DType::kF32, {loops::test::symbol("N"), 40}, loops::Access::kWrite)};
    const int order[] = {1, 0};
    if (swapped) kernel.buffers[0].type.layout = kernel.buffers[1].type.layout = Layout::permutation(order);
    kernel.stages = {{.name = "y",
                      .loops = {{"j", 40}},
                      .combine = loops::Combine::kAdd,
                      .scan = true,
                      .value = loops::load(0, DType::kF32, {i, j}),
                      .store = loops::Store{1, {i, j}}}};
    test::expect_same(kernel, {{"N", 37}}, {.relative = 1e-5});
  }
}

TEST(Scans, AreAsTheInterpreterSays) {
  for (const std::string_view op : kScans) {
    for (const std::string_view dtype : {"f32", "f64", "f16", "bf16", "i64", "i32", "i8", "u8"}) {
      for (const std::string_view columns : {"1", "3", "8", "33", "64", "331", "N"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", op, dtype, columns));
        const double relative = dtype == "bf16" ? 1e-2 : dtype == "f16" ? 2e-3 : 1e-6;
        test::expect_same(scan_kernel(op, dtype, columns), {{"N", 77}}, {.relative = relative});
      }
    }
  }
}

// NaN stays, and of zeros with different signs the later one counts.
TEST(Scans, ExtremesOfSpecialValues) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16}) {
    const int64_t rows = test::special_rows(dtype);
    for (const std::string_view op : {"cumulative_maximum", "cumulative_minimum"}) {
      SCOPED_TRACE(fmt::format("{} {}", op, to_string(dtype)));
      loops::Kernel kernel = scan_kernel(op, to_string(dtype), "70");
      kernel.parallel[0].extent = rows;
      for (loops::Buffer& buffer : kernel.buffers) buffer.type.shape[0] = rows;
      test::expect_same(kernel, {}, {.relative = 0}, {test::special_tensor(dtype, {rows, 70}, 0)});
    }
  }
}

}  // namespace
}  // namespace ingot::core::cpu
