// SPDX-License-Identifier: Apache-2.0
// The graph in an engine's key, whatever the key holds.
#include "compiler/key_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/error.h"
#include "tests/engine/programs.h"

namespace ingot::core {
namespace {

using ::testing::HasSubstr;

EngineData with_key(const std::string& graph) {
  EngineData engine;
  engine.main = testing::chain();
  engine.key = "ingot, made up\nweights prepared\n" + graph;
  return engine;
}

std::string problem_of(const std::string& graph) {
  try {
    (void)graph_of_key(with_key(graph));
  } catch (const UserError& error) {
    return error.details().code == "INGOT-U205" ? error.details().message : error.what();
  }
  return "";
}

TEST(KeyGraph, HasTheNamesOfInputsAndNumbersForOthers) {
  const Graph graph =
      graph_of_key(with_key("graph g0(%0: f32[s0 in 1..16,2]) {\n"
                            "  %1 = weight() {shape=[2], source=0} : f32[2]\n"
                            "  %2 = constant() {value=f32[99](sha256:00)} : f32[99]\n"
                            "  %3 = add(%0, %1) : f32[s0,2]\n  return %3, %2\n}\n"));
  EXPECT_EQ(graph.inputs()[0]->name, "x");
  EXPECT_EQ(graph.outputs[0]->name, "add_2");
  EXPECT_EQ(graph.outputs[1]->producer->literal->data, nullptr);
  EXPECT_EQ(std::get<std::string>(graph.nodes().front()->values[0]), "weight 0");
}

TEST(KeyGraph, RejectsOtherTexts) {
  EXPECT_THAT(problem_of(""), HasSubstr("there is none"));
  EXPECT_THAT(problem_of("graph g0(%0: f32[2]) {\n  %1 = later(%0) : f32[2]\n  return %1\n}\n"),
              HasSubstr("there is no operator 'later'"));
  EXPECT_THAT(problem_of("graph g0() {\n  return\n}\n"), HasSubstr("other inputs"));
  EXPECT_THAT(problem_of("graph g0(%0: f32[s0 in 1..16,2]) {\n"
                         "  %1 = weight() {shape=[s0], source=0} : f32[s0]\n  return %1\n}\n"),
              HasSubstr("a weight has no fixed size"));
}

}  // namespace
}  // namespace ingot::core
