// SPDX-License-Identifier: Apache-2.0
// Sizes that nodes determine, and graphs that nodes run: their text, their rules, and their values.
#include "ir/bound_symbol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "evaluate/evaluate.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "support/error.h"

namespace ingot::core {
namespace {

Graph parsed(std::string_view text) { return parse_graph(text, ops::find_op); }

constexpr const char* kSelecting = R"(graph g(%x: f32[S in 1..8]) {
  symbol U at most S
  %zero = full() {value=0, shape=[1]} : f32[1]
  %mask = less(%zero, %x) : bool[S]
  %ones = convert(%mask) {dtype=i64} : i64[S]
  %count = sum(%ones) {axes=[0]} : i64[]
  %size = bind_size(%count) {size=U} : i64[]
  %found = nonzero(%mask, %size) {size=U} : i64[U,1]
  %flat = reshape(%found) {shape=[U]} : i64[U]
  %y = take(%x, %flat) : f32[U]
  return %y
}
)";

Tensor floats(const std::vector<float>& values) {
  Tensor tensor = make_tensor(DType::kF32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), reinterpret_cast<float*>(tensor.data.get()));
  return tensor;
}
std::vector<float> values_of(const Tensor& tensor) {
  const auto* first = reinterpret_cast<const float*>(tensor.data.get());
  return {first, first + tensor.elements()};
}
std::vector<float> run(const Graph& graph, const std::vector<float>& values) {
  return values_of(evaluate(graph, std::vector{floats(values)}, {}).outputs[0]);
}

TEST(BoundSymbols, SurviveTheText) {
  const Graph graph = parsed(kSelecting);
  verify(graph, "parsing");
  EXPECT_EQ(to_string(parsed(to_string(graph))), to_string(graph));
  EXPECT_THAT(symbols_bound_by_nodes(graph), ::testing::ElementsAre("U"));
}

TEST(BoundSymbols, HaveValuesOnceTheirNodeHasRun) {
  const Graph graph = parsed(kSelecting);
  EXPECT_THAT(run(graph, {1, -1, 2}), ::testing::ElementsAre(1, 2));
  EXPECT_TRUE(run(graph, {-1, -1}).empty());
  EXPECT_THAT(run(graph, {3}), ::testing::ElementsAre(3));
}

TEST(BoundSymbols, AreLimited) {
  std::string text = kSelecting;
  text.replace(text.find("at most S"), 9, "at most 1");
  EXPECT_THAT(run(parsed(text), {1, -1}), ::testing::ElementsAre(1));
  EXPECT_THROW(run(parsed(text), {1, 1}), UserError);
}

TEST(BoundSymbols, AreTypicallyAsLargeAsTheyCanBe) {
  EXPECT_EQ(typical_sizes(parsed(kSelecting).symbols).at("U"), 8);
}

TEST(BoundSymbols, HaveNoUsesBeforeTheirNode) {
  Graph graph = parsed(kSelecting);
  Node* bind = nullptr;
  for (Node* node : graph.node_list()) {
    if (!bound_symbol(*node).empty()) bind = node;
  }
  Graph::InsertBefore before(graph, bind);
  const Node* ones = bind->operands[0]->producer->operands[0]->producer;
  graph.call(
      ops::reshape,
      {graph.call(ops::nonzero, {ones->operands[0], bind->operands[0]}, AttributeValues{Dim::symbol("U")})},
      AttributeValues{std::vector<Dim>{Dim::symbol("U")}});
  EXPECT_THROW(verify(graph, "a pass"), Error);
}

constexpr const char* kBranching = R"(graph g(%x: f32[S in 1..8]) {
  %zero = full() {value=0} : f32[]
  %sum = sum(%x) {axes=[0]} : f32[]
  %positive = less(%zero, %sum) : bool[]
  %y = branch(%positive, %x) {
    graph then(%a: f32[S]) {
      %b = negate(%a) : f32[S]
      return %b
    }
    graph otherwise(%a: f32[S]) {
      return %a
    }
  } : f32[S]
  return %y
}
)";

constexpr const char* kLooping = R"(graph g(%x: f32[S in 1..8], %go: bool[]) {
  %y = loop(%go, %x) {
    graph body(%i: i64[], %a: f32[S]) {
      %step = convert(%i) {dtype=f32} : f32[]
      %b = add(%a, %step) : f32[S]
      %end = full() {integer=3, dtype=i64} : i64[]
      %more = less(%i, %end) : bool[]
      return %more, %b
    }
  } : f32[S]
  return %y
}
)";

TEST(ControlFlow, SurvivesTheText) {
  for (const char* text : {kBranching, kLooping}) {
    const Graph graph = parsed(text);
    verify(graph, "parsing");
    EXPECT_EQ(to_string(parsed(to_string(graph))), to_string(graph));
  }
}

TEST(ControlFlow, BranchesByTheCondition) {
  const Graph graph = parsed(kBranching);
  EXPECT_THAT(run(graph, {1, 2}), ::testing::ElementsAre(-1, -2));
  EXPECT_THAT(run(graph, {1, -2}), ::testing::ElementsAre(1, -2));
}

TEST(ControlFlow, LoopsWhileTheConditionHolds) {
  const Graph graph = parsed(kLooping);
  for (const bool starts : {false, true}) {
    Tensor go = make_tensor(DType::kBool, {});
    write_integer(go.view(), {}, starts ? 1 : 0);
    const Evaluation result = evaluate(graph, std::vector{floats({1, 2}), go}, {});
    const float sum = starts ? 0 + 1 + 2 + 3 : 0;
    EXPECT_THAT(values_of(result.outputs[0]), ::testing::ElementsAre(1 + sum, 2 + sum));
  }
}

TEST(ControlFlow, HasGraphsThatFit) {
  const auto expect_refused = [](std::string text, std::string_view from, std::string_view to) {
    const size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    EXPECT_THROW(parsed(text), UserError) << text;
  };
  expect_refused(kBranching, "return %b", "return %b, %b");
  expect_refused(kBranching, "%a: f32[S]", "%a: f64[S]");
  expect_refused(kBranching, "branch(%positive, %x)", "branch(%positive)");
  expect_refused(kBranching, "branch(%positive, %x)", "branch(%x, %x)");
  expect_refused(kLooping, "%i: i64[]", "%i: i32[]");
  expect_refused(kLooping, "return %more, %b", "return %b, %more");
  expect_refused(kLooping, "return %more, %b", "return %more");
}

}  // namespace
}  // namespace ingot::core
