// SPDX-License-Identifier: Apache-2.0
#include "ir/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    EXPECT_THAT(error.details().message,
                testing::HasSubstr("after a pass, graph g: " + std::string(message)));
  }
}

TEST(Verify, UseBeforeDefinition) {
  Graph graph = parse(kText);
  Node* first = graph.nodes().front().get();
  graph.set_operand(first, 0, graph.outputs[0]);
  expect_broken(graph, "copy uses a value before its definition");
}

TEST(Verify, UseLists) {
  Graph graph = parse(kText);
  graph.nodes().front()->results[0]->users.pop_back();
  expect_broken(graph, "the users of %a are not listed rightly");
}

TEST(Verify, OperandsAndAttributes) {
  Graph graph = parse(kText);
  graph.set_operand(graph.nodes().front().get(), 0, nullptr);
  expect_broken(graph, "operand 'x' of copy is missing");
  graph = parse(kText);
  graph.nodes().front()->values.push_back(true);
  expect_broken(graph, "copy has 0 attributes, not 1");
}

TEST(Verify, StoredTypes) {
  Graph graph = parse(kText);
  graph.outputs[0]->type.shape = {3};
  expect_broken(graph, "%b is f32[S], and stored as f32[3]");
  graph = parse(kText);
  graph.outputs[0]->type.layout = Layout::blocked(std::vector{0}, 0, 8);
  verify(graph, "layouts are chosen");
}

TEST(Verify, Symbols) {
  Graph graph = parse(kText);
  graph.symbols.clear();
  expect_broken(graph, "%x has the unknown symbol S");
}

TEST(Verify, OutputsAndUpdates) {
  const Graph other = parse(kText);
  Graph graph = parse(kText);
  graph.outputs = {other.outputs[0]};
  expect_broken(graph, "an output is no value of the graph");
  graph = parse(kText);
  graph.updates.push_back({graph.outputs[0], graph.outputs[0]});
  expect_broken(graph, "%b is updated, and is neither state nor an input");
}

TEST(Verify, NestedGraphs) {
  constexpr const char* kNested =
      "graph g(%x: f32[2]) { %r = fused(%x) { graph g(%y: f32[2]) { %z = copy(%y) return %z } } : f32[2] "
      "return }";
  Graph graph = parse(kNested);
  Graph& nested = *graph.nodes().front()->graphs[0];
  nested.outputs.push_back(nested.outputs[0]);
  expect_broken(graph, "the results of fused have other types than the outputs of its graph");
  graph = parse(kNested);
  graph.nodes().front()->graphs[0]->nodes().front()->results[0]->users.push_back(nullptr);
  expect_broken(graph, "the users of %z are not listed rightly");
}

}  // namespace
}  // namespace ingot::core
