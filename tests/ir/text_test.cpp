// SPDX-License-Identifier: Apache-2.0
#include "ir/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parse_without_values.h"
#include "ir/verify.h"
#include "support/error.h"
#include "tests/ir/example_ops.h"

namespace ingot::core {
namespace {

using example::parse;

// Parses and prints.
void expect_round_trip(std::string_view text) {
  const Graph graph = parse(text);
  verify(graph, "parsing");
  EXPECT_EQ(to_string(graph), text);
}

std::string message_of(std::string_view text) {
  try {
    parse(text);
  } catch (const UserError& error) {
    return error.details().message;
  }
  return "no error";
}

TEST(Text, RoundTripOfSourcesOperandsAndUpdates) {
  expect_round_trip(R"(graph main(%ids: i64[B in 1..16 typical 8, S in 1..], %x: f32[B,2*S,384]) {
  symbol M
  symbol N in 0..64 at most 2*B
  symbol R in 7..8 by rank of "tp"/2 * "mesh \"dp\""/2 [8, 8, 7, 7]
  %w = weight() {name="layer.0.weight", shape=[768, 384]} : f32[768,384]
  %k = state() {name="cache", shape=[2, 4]} : f32[2,4]
  %h = linear(%x, %w) : f32[B,2*S,768]
  %a, %b = halves(%k) : f32[2,4], f32[2,4]
  report(%a)
  update %k = %b
  return %h, %ids
}
)");
}

TEST(Text, RoundTripOfAttributes) {
  expect_round_trip(R"(graph main(%x: f32[S,2]) {
  %"odd name" = settings(%x) {flag=true, count=-9223372036854775808, rate=1e-05, label="a \"b\" -- \\, }", dtype=bf16, size=2*S + 1, axes=[0, -1], scales=[1, inf, 0.1], shape=[S, 4], layout={1, 0}} : f32[S,2]
  %p = settings(%"odd name") : f32[S,2]{1, 0}
  %q = copy(%p) : f32[S,2]
  return %q
}
)");
}

TEST(Text, RoundTripOfConstants) {
  expect_round_trip(R"(graph main() {
  %a = constant() {value=f32[2,2](1, -0, nan, -inf)} : f32[2,2]
  %b = constant() {value=bool[3](0, 1, 1)} : bool[3]
  %c = constant() {value=i64[](-9223372036854775808)} : i64[]
  %d = constant() {value=u64[1](18446744073709551615)} : u64[1]
  %e = constant() {value=i4[2,3](-8, 7, 0, 1, 2, 3)} : i4[2,3]
  %f = constant() {value=bf16[0,3]()} : bf16[0,3]
  return %a, %b, %c, %d, %e, %f
}
)");
}

TEST(Text, RoundTripOfNestedGraphs) {
  expect_round_trip(R"(graph main(%v: f32[B,4], %go: bool[]) {
  %x = copy(%v) : f32[B,4]{1, 0}
  %r = fused(%x) {
      graph region(%x: f32[B,4]{1, 0}) {
        %y = copy(%x) : f32[B,4]{1, 0}
        return %y
      }
    } : f32[B,4]{1, 0}
  %s = branch(%go, %v) {
      graph then(%a: f32[B,4]) {
        return %a
      }
      graph otherwise(%a: f32[B,4]) {
        %b = copy(%a) : f32[B,4]
        return %b
      }
    } : f32[B,4]
  return %s
}
)");
}

TEST(Text, TypesMayBeLeftOut) {
  const Graph graph = parse("graph g(%x: f32[2]) { %y = copy(%x) return %y }");
  EXPECT_EQ(to_string(graph.outputs[0]->type), "f32[2]");
}

TEST(Text, CommentsAreSkippedAndSourcesAreComments) {
  Graph graph = parse("graph g(%x: f32[2]) { -- inputs\n %y = copy(%x) -- here }\n return %y }");
  graph.nodes().front()->source = {.file = "a.py", .line = 3, .function = "for\nward", .module_path = ""};
  EXPECT_THAT(to_string(graph), testing::HasSubstr("%y = copy(%x) : f32[2]   -- a.py:3 in for ward\n"));
  EXPECT_THAT(to_string(graph, {.sources = false}), testing::Not(testing::HasSubstr("a.py")));
}

TEST(Text, CanonicalTextDependsOnNoNames) {
  const Graph a = parse("graph a(%x: f32[2]) { %y, %z = halves(%x) return %z, %x }");
  const Graph b = parse("graph b(%q: f32[2]) { -- note\n %r, %s = halves(%q) return %s, %q }");
  EXPECT_EQ(to_string(a, {.canonical = true}), to_string(b, {.canonical = true}));
  EXPECT_EQ(to_string(a, {.canonical = true}),
            "graph g0(%0: f32[2]) {\n  %1, %2 = halves(%0) : f32[2], f32[2]\n  return %2, %0\n}\n");
  EXPECT_EQ(to_string(parse(to_string(a, {.canonical = true})), {.canonical = true}),
            to_string(a, {.canonical = true}));
}

TEST(Text, DigestsCanBeReadAsConstantsWithoutValues) {
  Graph graph;
  graph.outputs.push_back(graph.add_constant(make_tensor(DType::kF32, {33})));
  graph.outputs.push_back(graph.add_constant(make_tensor(DType::kF32, {2})));
  const Graph read = parse_without_values(to_string(graph), &example::find_op);
  EXPECT_EQ(to_string(read.outputs[0]->type), "f32[33]");
  EXPECT_EQ(read.outputs[0]->producer->literal->data, nullptr);
  EXPECT_NE(read.outputs[1]->producer->literal->data, nullptr);
  const std::string huge =
      "graph g() { %c = constant() {value=c64[4611686018427387904,8](sha256:0)} return %c }";
  EXPECT_EQ(parse_without_values(huge, &example::find_op).outputs[0]->type.dtype, DType::kC64);
  EXPECT_ANY_THROW(
      parse_without_values("graph g() { %c = constant() {value=f32[33](sha256:", &example::find_op));
}

TEST(Text, LargeConstantsArePrintedAsDigests) {
  Graph graph;
  Tensor tensor = make_tensor(DType::kF32, {33});
  graph.outputs.push_back(graph.add_constant(tensor));
  const std::string text = to_string(graph);
  EXPECT_THAT(text, testing::HasSubstr("value=f32[33](sha256:"));
  EXPECT_THAT(message_of(text), testing::HasSubstr("2:48: the values of this constant were left out"));
  write_double(tensor.view(), std::vector<int64_t>{7}, 1);
  EXPECT_NE(to_string(graph), text);
}

struct BadText {
  const char* text;
  const char* message;
};

TEST(Text, MistakesAreShownWithLineAndColumn) {
  const BadText cases[] = {
      {"", "1:1: expected 'graph'"},
      {"graph g() {\n  return\n} x", "3:3: unexpected text after the graph"},
      {"graph g() {\n  %a = \n  copi(%b)", "3:3: there is no operator 'copi'"},
      {"graph g() {\n  %a = copy(%b)", "2:14: %b is not defined here"},
      {"graph g() {\n  %a = copy(%a)", "2:14: %a is not defined here"},
      {"graph g(%x: f32[2], %x: f32[3])", "1:22: %x is defined twice"},
      {"graph g(%x: f33[2])", "1:16: expected a type such as f32[2,3]"},
      {"graph g(%x: f32[2)", "1:18: expected ']'"},
      {"graph g(%x: f32[B in 4..2])", "1:26: the range is empty"},
      {"graph g(%x: f32[B in 1..2], %y: f32[B in 1..3])", "1:37: B is declared twice"},
      {"graph g(%x: f32[2*B]) { return }", "1:25: the symbol B is not declared"},
      {"graph g(%x: f32[2]) { %y = settings(%x) {size=T} return }", "1:48: the symbol T is not declared"},
      {"graph g(%x: f32[2]) { %y = settings(%x) {sice=1} return }",
       "1:42: settings has no attribute 'sice'; it has flag, count, rate, label, dtype, size, axes, scales, "
       "shape, layout"},
      {"graph g(%x: f32[2]) { %y = settings(%x) {count=1.5} return }", "1:48: '1.5' is not an integer"},
      {"graph g(%x: f32[2]) { %y = settings(%x) {label=\"a} return }",
       "1:48: a quoted string is not terminated"},
      {"graph g(%x: f32[2]) { %y = settings(%x) {layout={2}} return }",
       "1:49: '{2}' is not a layout: dim 2 is out of range for 1 dims at column 3"},
      {"graph g(%x: f32[2]) {\n %y = copy(%x) : f32[3]", "2:7: the result of copy is f32[2], not f32[3]"},
      {"graph g(%x: f32[2]) {\n %y, %z = copy(%x) return }", "2:11: copy has 1 results, not 2"},
      {"graph g(%x: f32[2]) {\n %y = copy() return }", "2:7: operand 'x' of copy is missing"},
      {"graph g(%x: f32[2]) {\n %y = copy(%x, %x) return }", "2:7: copy takes 1 operand, not 2"},
      {"graph g(%x: i64[2]) {\n %y = linear(%x, %x) return }",
       "2:7: operand 'x' of linear is i64, and must have a floating-point dtype"},
      {"graph g(%x: f32[2]) {\n %y = linear(%x, %x) return }", "2:7: the shapes do not fit"},
      {"graph g(%x: f32[2]) {\n %y = copy(%x) { graph n() { return } } return }",
       "2:7: copy cannot have nested graphs"},
      {"graph g(%x: f32[2]) {\n %y = copy(%x) update %y = %x return }",
       "2:23: %y is updated, but is neither state nor an input"},
      {"graph g(%x: f32[2]) { update %x = %x update %x = %x return }", "1:45: %x is updated twice"},
      {"graph g() { %c = constant() return %c }", "1:18: constant has no value"},
      {"graph g() { %c = constant() {value=f32[2](1)} return }",
       "1:42: 1 values do not fill the shape of the constant"},
      {"graph g() { %c = constant() {value=f32[4611686018427387904,8](1)} return }",
       "1:62: 1 values do not fill the shape of the constant"},
      {"graph g() { %c = constant() {value=u8[1](256)} return }", "1:41: '256' is not a value of u8"},
      {"graph g() { 17", "1:13: there is no operator '17'"},
      {"graph g() { ", "1:13: expected a statement"},
  };
  for (const BadText& bad : cases) EXPECT_EQ(message_of(bad.text), bad.message) << bad.text;
}

TEST(Text, NestingIsBounded) {
  std::string text = "graph g(%x: f32[2]) {";
  for (int i = 0; i < 10000; ++i) text += "%y = fused(%x) { graph g(%x: f32[2]) {";
  EXPECT_THAT(message_of(text), testing::HasSubstr("graphs are nested too deeply"));
}

}  // namespace
}  // namespace ingot::core
