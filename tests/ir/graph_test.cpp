// SPDX-License-Identifier: Apache-2.0
#include "ir/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "support/error.h"
#include "tests/ir/example_ops.h"

namespace ingot::core {
namespace {

using example::parse;
using testing::ElementsAre;

const TensorType kType = {.dtype = DType::kF32, .shape = {2}, .layout = {}};

std::vector<std::string> names(const Graph& graph) {
  std::vector<std::string> result;
  for (const auto& node : graph.nodes()) result.push_back(node->results[0]->name);
  return result;
}

TEST(Graph, AddsNodesWithUsersTypesAndUniqueNames) {
  Graph graph;
  Value* x = graph.add_input("x", kType);
  EXPECT_EQ(graph.add_input("x", kType)->name, "x_1");
  graph.current_name = "layer";
  graph.current_source = {.file = "m.py", .line = 1, .function = "f", .module_path = ""};
  Value* a = graph.call(example::copy, {x});
  Node* join = graph.add(example::join, {a, x, a});
  EXPECT_EQ(a->name, "layer");
  EXPECT_EQ(join->results[0]->name, "layer_1");
  EXPECT_EQ(join->source.to_string(), "m.py:1 in f");
  EXPECT_THAT(a->users, ElementsAre(join, join));
  EXPECT_EQ(a->type, kType);
  verify(graph, "building");
}

TEST(Graph, AbsentOptionalOperandsAreNull) {
  Graph graph;
  Value* x = graph.add_input("x", {.dtype = DType::kF32, .shape = {2, 2}, .layout = {}});
  const Node* linear = graph.add(example::linear, {x, x});
  EXPECT_THAT(linear->operands, ElementsAre(x, x, nullptr));
  EXPECT_FALSE(linear->has_operand(2));
}

TEST(Graph, ErrorsNameNodeAndSource) {
  Graph graph;
  Value* x = graph.add_input("x", kType);
  graph.current_name = "layer";
  graph.current_source = {.file = "m.py", .line = 7, .function = "", .module_path = ""};
  for (const size_t operands : {0, 2}) {
    try {
      graph.add(example::linear, std::vector<Value*>(operands, x));
      FAIL();
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().node, "layer");
      EXPECT_EQ(error.details().source_line, "m.py:7");
    }
  }
  EXPECT_THAT(graph.nodes(), testing::IsEmpty());
  EXPECT_THAT(x->users, testing::IsEmpty());
}

TEST(Graph, AttributesComeBackAsTheirStruct) {
  Graph graph;
  const Node* node = graph.add(
      ops::weight, {}, ops::ModelSource{.name = "w", .dtype = DType::kI8, .shape = {3}, .layout = {}});
  EXPECT_EQ(node->attributes<ops::ModelSource>().name, "w");
  EXPECT_EQ(to_string(node->results[0]->type), "i8[3]");
}

TEST(Graph, InsertsBeforeANodeAndInheritsItsPlace) {
  Graph graph = parse("graph g(%x: f32[2]) { %a = copy(%x) %b = copy(%a) return %b }");
  Node* last = graph.nodes().back().get();
  last->source.file = "m.py";
  {
    Graph::InsertBefore scope(graph, last);
    Value* c = graph.call(example::copy, {graph.inputs()[0]});
    graph.rename(c, "c");
    EXPECT_EQ(c->producer->source.file, "m.py");
    graph.replace_uses(last->results[0], c);
    graph.erase(last);  // the insertion point moves on
    graph.rename(graph.call(example::copy, {c}), "d");
  }
  graph.rename(graph.call(example::copy, {graph.inputs()[0]}), "e");
  EXPECT_THAT(names(graph), ElementsAre("a", "c", "d", "e"));
  EXPECT_EQ(graph.nodes().back()->source.file, "");
  verify(graph, "inserting");
}

TEST(Graph, ReplacesUsesInOperandsOutputsAndUpdates) {
  Graph graph = parse("graph g(%x: f32[2]) { %a = copy(%x) %b = join(%a, %a) update %x = %a return %a, %b }");
  Value* a = graph.outputs[0];
  Value* x = graph.inputs()[0];
  EXPECT_TRUE(graph.is_output(a));
  graph.replace_uses(a, x);
  EXPECT_FALSE(graph.is_output(a));
  graph.erase(a->producer);
  EXPECT_EQ(to_string(graph),
            "graph g(%x: f32[2]) {\n  %b = join(%x, %x) : f32[2]\n  update %x = %x\n  return %x, %b\n}\n");
  verify(graph, "replacing");
}

TEST(Graph, ErasesOnlyWhatIsUnused) {
  Graph graph = parse("graph g(%x: f32[2]) { %a = copy(%x) %b = copy(%a) return }");
  EXPECT_THROW(graph.erase(graph.nodes().front().get()), InternalError);
  graph.erase(graph.nodes().back().get());
  graph.erase(graph.nodes().front().get());
  EXPECT_THAT(graph.inputs()[0]->users, testing::IsEmpty());
}

TEST(Graph, ErasesDeadNodesButNoSideEffects) {
  Graph graph = parse(R"(graph g(%x: f32[2], %y: f32[2], %go: bool[]) {
    %s = state() {name="s", shape=[2]}
    %a = copy(%x)
    %b = copy(%a)
    report(%a)
    %u = copy(%x)
    update %s = %u
    %c = branch(%go, %x) {
      graph n(%z: f32[2]) { %d = copy(%z) report(%z) return %z } graph o(%z: f32[2]) { return %z }
    } : f32[2]
    return
  })");
  graph.erase_dead_nodes();
  graph.remove_unused_inputs();
  EXPECT_EQ(to_string(graph), R"(graph g(%x: f32[2], %go: bool[]) {
  %s = state() {name="s", shape=[2]} : f32[2]
  %a = copy(%x) : f32[2]
  report(%a)
  %u = copy(%x) : f32[2]
  %c = branch(%go, %x) {
      graph n(%z: f32[2]) {
        report(%z)
        return %z
      }
      graph o(%z: f32[2]) {
        return %z
      }
    } : f32[2]
  update %s = %u
  return
}
)");
  verify(graph, "erasing");
}

TEST(Graph, CloneIsIndependentAndEqual) {
  Graph graph = parse(R"(graph g(%x: f32[S in 1..4]) {
    %c = constant() {value=f32[2](1, 2)}
    %r = fused(%x) { graph n(%z: f32[S]) { %d = copy(%z) return %d } } : f32[S]
    update %x = %r
    return %c
  })");
  graph.nodes().back()->source.file = "m.py";
  Graph copy = graph.clone();
  verify(copy, "cloning");
  EXPECT_EQ(to_string(copy), to_string(graph));
  copy.outputs.clear();
  copy.updates.clear();
  copy.erase_dead_nodes();
  EXPECT_EQ(graph.nodes().size(), 2u);
  verify(graph, "cloning");
}

TEST(Graph, RevisionGrowsWithEachChange) {
  Graph graph;
  uint64_t seen = graph.revision();
  const auto grew = [&] { return graph.revision() > std::exchange(seen, graph.revision()); };
  Value* x = graph.add_input("x", kType);
  EXPECT_TRUE(grew());
  Node* node = graph.add(example::join, {x});
  EXPECT_TRUE(grew());
  graph.set_operand(node, 0, x);
  EXPECT_FALSE(grew());
  graph.erase_dead_nodes();
  EXPECT_TRUE(grew());
}

}  // namespace
}  // namespace ingot::core
