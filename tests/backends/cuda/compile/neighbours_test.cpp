// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels whose threads compute several neighbours, with operands that lie beside each other or
// not.
#include "backends/cuda/compile/neighbours.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "tests/backends/cuda/run_kernels.h"

namespace ingot::core::cuda {
namespace {

struct Neighbours {
  const char* name;
  const char* graph;        // of one node; HALF is a dtype
  int wide;                 // for 16-bit dtypes
  const char* layout = "";  // of the result
};

const Neighbours kNeighbours[] = {
    {"beside_each_other",
     "graph g(%a: HALF[700,512], %b: HALF[700,512]) {\n %y = add(%a, %b) : HALF[700,512]\n return %y\n}", 8},
    {"of_one_row",
     "graph g(%a: HALF[700,512], %b: HALF[1,512]) {\n %y = add(%a, %b) : HALF[700,512]\n return %y\n}", 8},
    {"of_one_column",
     "graph g(%a: HALF[700,512], %b: HALF[700,1]) {\n %y = add(%a, %b) : HALF[700,512]\n return %y\n}", 8},
    {"by_fours", "graph g(%a: HALF[525,500]) {\n %y = negate(%a) : HALF[525,500]\n return %y\n}", 4},
    {"by_twos", "graph g(%a: HALF[525,502]) {\n %y = negate(%a) : HALF[525,502]\n return %y\n}", 2},
    {"by_ones", "graph g(%a: HALF[525,501]) {\n %y = negate(%a) : HALF[525,501]\n return %y\n}", 1},
    {"few", "graph g(%a: HALF[80,512]) {\n %y = negate(%a) : HALF[80,512]\n return %y\n}", 1},
    {"between_zeros",
     "graph g(%a: HALF[700,509]) {\n %y = pad(%a) {low=[0, 3], high=[1, 8]} : HALF[701,520]\n return %y\n}",
     8},
    {"of_two",
     "graph g(%a: HALF[700,205], %b: HALF[700,307]) {\n %y = concat(%a, %b) {axis=1} : HALF[700,512]\n "
     "return %y\n}",
     8},
    {"from_the_third",
     "graph g(%a: HALF[700,515]) {\n %y = slice(%a) {axis=1, start=3, end=515, step=1} : HALF[700,512]\n "
     "return %y\n}",
     8},
    {"of_rows_by_number",
     "graph g(%a: HALF[90,512], %i: i64[700]) {\n %y = take(%a, %i) {axis=0} : HALF[700,512]\n return %y\n}",
     8},
    {"channels_last", "graph g(%a: HALF[4,64,40,32]) {\n %y = negate(%a) : HALF[4,64,40,32]\n return %y\n}",
     8, "{0, 2, 3, 1}"},
};

loops::Kernel kernel_of(const Neighbours& test, std::string_view dtype) {
  std::string text = test.graph;
  for (size_t at; (at = text.find("HALF")) != std::string::npos;) text.replace(at, 4, dtype);
  const Graph graph = parse_graph(text, ops::find_op);
  const Node& node = *graph.nodes().back();
  Value& result = *node.results[0];
  if (*test.layout != 0) result.type.layout = parse_layout(test.layout, result.type.rank());
  return node.op->lower(node);
}

class CudaNeighbours : public ::testing::TestWithParam<Neighbours> {};

TEST_P(CudaNeighbours, AreAsTheInterpreterSays) {
  std::vector<test::Case> cases;
  for (const std::string_view dtype : {"f16", "bf16", "f32", "i32"}) {
    cases.push_back({.kernel = kernel_of(GetParam(), dtype), .symbols = {}, .operands = {}});
    const std::vector<int> wide = write_kernel(cases.back().kernel, "k").plan.neighbours;
    const int expected = dtype == "i32" ? 1 : dtype == "f32" ? std::min(GetParam().wide, 4) : GetParam().wide;
    EXPECT_EQ(wide, std::vector{expected}) << dtype;
  }
  test::expect_all_same(std::move(cases), {.low = 0, .high = 80});  // numbers of rows are among them
}

INSTANTIATE_TEST_SUITE_P(All, CudaNeighbours, ::testing::ValuesIn(kNeighbours),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ingot::core::cuda
