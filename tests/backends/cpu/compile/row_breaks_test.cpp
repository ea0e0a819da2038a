// SPDX-License-Identifier: Apache-2.0
// Rows that are joined, shifted, padded, cut by a diagonal or reversed, at sizes on both sides of whole
// vectors.
#include "backends/cpu/compile/prepare/row_breaks.h"

#include <gtest/gtest.h>

#include <fmt/core.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "tests/backends/cpu/compile/run_kernel.h"

namespace ingot::core::cpu {
namespace {

struct Move {
  const char* name;
  const char* graph;  // of one node; DTYPE is a dtype
  size_t breaks;      // of a row of f32, with AVX-512
  SymbolValues sizes = {};
};

const Move kMoves[] = {
    {"joined",
     "graph g(%a: DTYPE[5,512], %b: DTYPE[5,512]) {\n %y = concat(%a, %b) {axis=1} : DTYPE[5,1024]\n return "
     "%y\n}",
     1},
    {"joined_at_any_element",
     "graph g(%a: DTYPE[5,301], %b: DTYPE[5,77], %c: DTYPE[5,1], %d: DTYPE[5,400]) {\n"
     " %y = concat(%a, %b, %c, %d) {axis=1} : DTYPE[5,779]\n return %y\n}",
     3},
    {"joined_from_many",
     "graph g(%a: DTYPE[5,301], %b: DTYPE[5,77]) {\n"
     " %y = concat(%a, %b, %a, %b, %a) {axis=1} : DTYPE[5,1057]\n return %y\n}",
     0},
    {"joined_short",
     "graph g(%a: DTYPE[50,3], %b: DTYPE[50,30]) {\n %y = concat(%a, %b) {axis=1} : DTYPE[50,33]\n return "
     "%y\n}",
     0},
    {"joined_of_any_size",
     "graph g(%a: DTYPE[5,N in 1..999], %b: DTYPE[5,M in 1..999]) {\n"
     " %y = concat(%a, %b) {axis=1} : DTYPE[5,N + M]\n return %y\n}",
     1,
     {{"N", 70}, {"M", 400}}},
    {"shifted", "graph g(%a: DTYPE[5,600]) {\n %y = roll(%a) {axis=1, shift=7} : DTYPE[5,600]\n return %y\n}",
     1},
    {"shifted_back",
     "graph g(%a: DTYPE[5,600]) {\n %y = roll(%a) {axis=1, shift=-64} : DTYPE[5,600]\n return %y\n}", 1},
    {"shifted_rows",
     "graph g(%a: DTYPE[5,600]) {\n %y = roll(%a) {axis=0, shift=2} : DTYPE[5,600]\n return %y\n}", 0},
    {"padded",
     "graph g(%a: DTYPE[5,600]) {\n %y = pad(%a) {low=[1, 3], high=[2, 9]} : DTYPE[8,612]\n return %y\n}", 2},
    {"below_a_diagonal",
     "graph g(%a: DTYPE[600,500]) {\n %y = triangle(%a) {diagonal=0, upper=false} : DTYPE[600,500]\n return "
     "%y\n}",
     1},
    {"above_a_diagonal",
     "graph g(%a: DTYPE[600,500]) {\n %y = triangle(%a) {diagonal=-3, upper=true} : DTYPE[600,500]\n return "
     "%y\n}",
     1},
    {"reversed", "graph g(%a: DTYPE[5,601]) {\n %y = flip(%a) {axes=[1]} : DTYPE[5,601]\n return %y\n}", 0},
    {"reversed_rows",
     "graph g(%a: DTYPE[5,601]) {\n %y = flip(%a) {axes=[0, 1]} : DTYPE[5,601]\n return %y\n}", 0},
};

loops::Kernel kernel_of(const Move& move, std::string_view dtype) {
  std::string text = move.graph;
  for (size_t at; (at = text.find("DTYPE")) != std::string::npos;) text.replace(at, 5, dtype);
  const Graph graph = parse_graph(text, ops::find_op);
  const Node& node = *graph.nodes().back();
  loops::Kernel kernel = node.op->lower(node);
  kernel.symbols = graph.symbols;
  return kernel;
}

class RowBreaks : public ::testing::TestWithParam<Move> {};

TEST_P(RowBreaks, AreAsTheInterpreterSays) {
  for (const std::string_view dtype : {"f32", "f64", "f16", "bf16", "i8", "i64", "bool", "e4m3"}) {
    SCOPED_TRACE(dtype);
    test::expect_same(kernel_of(GetParam(), dtype), GetParam().sizes);
  }
}

TEST_P(RowBreaks, AreWhereConditionsChange) {
  const loops::Kernel kernel = kernel_of(GetParam(), "f32");
  const CpuFeatures features = parse_cpu_features("x86-64-v4");
  EXPECT_EQ(row_breaks(kernel, plan_lanes(kernel, features)).size(), GetParam().breaks);
}

INSTANTIATE_TEST_SUITE_P(Moves, RowBreaks, ::testing::ValuesIn(kMoves),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace ingot::core::cpu
