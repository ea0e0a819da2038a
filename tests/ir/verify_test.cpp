// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "ops/ops.h"
#include "support/error.h"
#include "tests/ir/example_ops.h"

namespace ingot::core {
namespace {

using example::parse;

constexpr const char* kText = "graph g(%x: f32[S]) { %a = copy(%x) %b = join(%a, %a) return %b }";

void expect_broken(const Graph& graph, std::string_view message) {
  try {
    verify(graph, "a pass");
    FAIL() << message;
  } catch (const InternalError& error) {
    EXPECT_THAT(error.details().message, testing::HasSubstr("after a pass, graph g" + std::string(message)));
  }
}

TEST(Verify, UseBeforeDefinition) {
  Graph graph = parse(kText);
  Node* first = graph.nodes().front().get();
  graph.set_operand(first, 0, graph.outputs[0]);
  expect_broken(graph, ": copy uses a value before its definition");
}

TEST(Verify, UseLists) {
  Graph graph = parse(kText);
  graph.nodes().front()->results[0]->users.pop_back();
  expect_broken(graph, ": the list of users of %a is wrong");
}

TEST(Verify, OperandsAndAttributes) {
  Graph graph = parse(kText);
  graph.set_operand(graph.nodes().front().get(), 0, nullptr);
  expect_broken(graph, ": operand 'x' of copy is missing");
  graph = parse(kText);
  graph.nodes().front()->values.push_back(true);
  expect_broken(graph, ": copy has 0 attributes, not 1");
}

TEST(Verify, StoredTypes) {
  Graph graph = parse(kText);
  graph.outputs[0]->type.shape = {3};
  expect_broken(graph, ": %b is f32[S], but stored as f32[3]");
  graph = parse(kText);
  graph.outputs[0]->producer->operands[0]->type.layout = Layout::blocked(std::vector{0}, 0, 8);
  verify(graph, "layouts are chosen");
}

TEST(Verify, Symbols) {
  Graph graph = parse(kText);
  graph.symbols.clear();
  expect_broken(graph, ": %x has the unknown symbol S");
}

TEST(Verify, OutputsAndUpdates) {
  const Graph other = parse(kText);
  Graph graph = parse(kText);
  graph.outputs = {other.outputs[0]};
  expect_broken(graph, ": an output is not a value of the graph");
  graph = parse(kText);
  graph.updates.push_back({graph.outputs[0], graph.outputs[0]});
  expect_broken(graph, ": %b is updated, but is neither state nor an input");
}

TEST(Verify, NestedGraphs) {
  constexpr const char* kNested =
      "graph g(%x: f32[2]) { %r = fused(%x) { graph g(%y: f32[2]) { %z = copy(%y) return %z } } : f32[2] "
      "return }";
  Graph graph = parse(kNested);
  Graph& nested = *graph.nodes().front()->graphs[0];
  nested.outputs.push_back(nested.outputs[0]);
  expect_broken(graph, ": the results of fused differ in type from the outputs of its graph");
  graph = parse(kNested);
  graph.nodes().front()->graphs[0]->nodes().front()->results[0]->users.push_back(nullptr);
  expect_broken(graph, ": the list of users of %z is wrong");
}

// Rules of ir/storage_rules.h, each broken once.
constexpr std::array kPermuted = {1, 0};

Graph parse_ops(std::string_view text) { return parse_graph(text, ops::find_op); }

constexpr const char* kInPlace =
    "graph g(%x: f32[4,3], %s: f32[2,3]) { %a = exp(%x) %b = slice_scatter(%a, %s) {end=2} return %b }";

TEST(VerifyStorage, InPlaceOperatorsKeepTheirOperandsType) {
  Graph graph = parse_ops(kInPlace);
  verify(graph, "parsing");
  graph.outputs[0]->producer->operands[0]->type.layout = Layout::permutation(kPermuted);
  graph.outputs[0]->producer->name = "copy_3";
  graph.outputs[0]->producer->source = {.file = "m.py", .line = 7};
  expect_broken(graph,
                ", node copy_3 (m.py:7): %b: f32[4,3] is written in place of %a: f32[4,3]{1, 0}, but their "
                "types differ");
}

TEST(VerifyStorage, PortsAreRowMajor) {
  const Layout permuted = Layout::permutation(kPermuted);
  Graph graph = parse_ops("graph g(%x: f32[4,3]) { %a = exp(%x) return %a }");
  graph.inputs()[0]->type.layout = permuted;
  expect_broken(graph, ": the input %x: f32[4,3]{1, 0} is not row-major");
  graph.inputs()[0]->type.layout = {};
  graph.outputs[0]->type.layout = permuted;
  expect_broken(graph, ": the output %a: f32[4,3]{1, 0} is not row-major");
  verify(graph, "init may", OutputLayouts::kAny);
}

TEST(VerifyStorage, UpdatesKeepTheStatesType) {
  Graph graph = parse_ops(
      "graph g(%x: f32[2,2]) { %s = state() {name=\"s\", shape=[2, 2]} %a = exp(%x) update %s = %a return }");
  verify(graph, "parsing");
  graph.updates[0].value->type.layout = Layout::permutation(kPermuted);
  expect_broken(graph, ": %a: f32[2,2]{1, 0} becomes the value of %s: f32[2,2], but their types differ");
  graph.updates[0].target->type.layout = Layout::permutation(kPermuted);
  expect_broken(graph, ": the state %s: f32[2,2]{1, 0} is not row-major");
}

TEST(VerifyStorage, RoutinesSeeRowMajorValues) {
  Graph graph = parse_ops("graph g(%x: f32[4,3]) { %a = exp(%x) %v, %i = sort(%a) return %v }");
  graph.outputs[0]->producer->operands[0]->type.layout = Layout::permutation(kPermuted);
  expect_broken(graph, ": %a: f32[4,3]{1, 0} of a routine is not row-major");
}

TEST(VerifyStorage, LayoutsHoldEachElementOnce) {
  Graph graph = parse_ops("graph g(%x: f32[4,3]) { %a = exp(%x) %b = exp(%a) return %b }");
  graph.outputs[0]->producer->operands[0]->type.layout = Layout{{{0}, {0}}};
  expect_broken(graph, ": %a: the layout {0, 0} does not store each element of 2 dims exactly once");
}

TEST(VerifyStorage, LiteralsHaveTheirType) {
  Graph graph = parse_ops("graph g() { %c = constant() {value=f32[1,2](1, 2)} return %c }");
  graph.outputs[0]->type.layout = Layout::permutation(kPermuted);
  expect_broken(graph, ": %c: f32[1,2]{1, 0} has a literal of type f32[1,2]");
}

TEST(VerifyStorage, RegionsComputeOnly) {
  const std::string text =
      "graph g(%x: f32[4]) { %f = fused(%x) { graph r(%y: f32[4]) { %v, %i = sort(%y) return %v } } : "
      "f32[4] return %f }";
  EXPECT_THROW(parse_ops(text), UserError);
}

TEST(VerifyStorage, AttributesUseKnownSymbols) {
  Graph graph = parse_ops("graph g(%x: f32[S in 1..4]) { %i = iota() {extent=3, start=S} return %i }");
  graph.outputs[0]->producer->values[0] = Dim::symbol("T");
  expect_broken(graph, ": an attribute of iota has the unknown symbol T");
}

// Hand-written text is rejected like any other mistake.
TEST(VerifyStorage, TextsAreRefused) {
  for (const char* text : {"graph g(%x: f32[4,3]{1, 0}) { return }", "graph g(%x: f32[4,3]{0, 0}) { return }",
                           "graph g(%x: f32[4,3]) { %a = exp(%x) : f32[4,3]{0} return }",
                           "graph g(%x: f32[4,3]) { %a = relayout(%x) {layout={1, 1}} return }",
                           "graph g(%x: f32[4,3], %s: f32[2,3]) "
                           "{ %b = slice_scatter(%x, %s) {end=2} : f32[4,3]{1, 0} return }"}) {
    EXPECT_THROW(parse_ops(text), UserError) << text;
  }
}

}  // namespace
}  // namespace ingot::core
