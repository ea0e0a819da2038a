// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One pass run leaves one node more.
Graph add_node(Graph graph) {
  graph.call(ops::exp, {graph.inputs()[0]});
  return graph;
}

Graph one_input() { return parse_graph("graph g(%x: f32[2]) { return }", ops::find_op); }

// Which of three runs take place.
std::vector<std::string> runs(const PassOptions& options) {
  PassRunner runner(options);
  Graph graph = one_input();
  graph = runner.run("simplify", std::move(graph), add_node, 1);
  graph = runner.run("recognize_compositions", std::move(graph), add_node, 1, true);
  graph = runner.run("fuse", std::move(graph), add_node, 2);
  std::vector<std::string> names;
  for (const auto& timing : runner.timings()) names.push_back(timing.name);
  EXPECT_EQ(graph.nodes().size(), names.size());
  return names;
}

TEST(PassRunner, SkipsByNameLevelNumericsPlaceAndCount) {
  EXPECT_THAT(runs({}), ElementsAre("simplify", "recognize_compositions", "fuse"));
  EXPECT_THAT(runs({.disabled = {"simplify"}}), ElementsAre("recognize_compositions", "fuse"));
  EXPECT_THAT(runs({.stop_after = "simplify"}), ElementsAre("simplify"));
  EXPECT_THAT(runs({.disabled = {"simplify"}, .stop_after = "simplify"}), IsEmpty());
  EXPECT_THAT(runs({.bisect_limit = 2}), ElementsAre("simplify", "recognize_compositions"));
  EXPECT_THAT(runs({.level = 1}), ElementsAre("simplify", "recognize_compositions"));
  EXPECT_THAT(runs({.level = 0}), IsEmpty());
  EXPECT_THAT(runs({.strict = true}), ElementsAre("simplify", "fuse"));
}

TEST(PassRunner, UnknownNamesAreRefusedWithTheNearest) {
  try {
    PassRunner runner({.disabled = {"simplfy"}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U004");
    EXPECT_THAT(error.details().advice, testing::HasSubstr("simplify"));
  }
}

TEST(PassRunner, VerifiesAndDumpsWhatChanged) {
  std::vector<std::string> dumped;
  PassRunner runner({}, [&](std::string_view pass, const Graph&) { dumped.emplace_back(pass); });
  Graph graph = runner.run("simplify", one_input(), add_node);
  graph = runner.run("fuse", std::move(graph), [](Graph same) { return same; });
  EXPECT_THAT(dumped, ElementsAre("simplify"));
  const auto break_graph = [](Graph broken) {
    broken.set_operand(broken.nodes().front().get(), 0, nullptr);
    return broken;
  };
  EXPECT_THROW(runner.run("fuse", std::move(graph), break_graph), InternalError);
}

TEST(Pipeline, EveryRowSaysWhyAndRunsOnAnEmptyGraph) {
  for (const PassRow& row : pipeline()) {
    EXPECT_NE(row.why, "") << row.name;
    EXPECT_EQ(to_string(row.run(one_input())), to_string(one_input())) << row.name;
  }
}

}  // namespace
}  // namespace ingot::core
