// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/compiler/backends.h"
#include "compiler/target_pipeline.h"
#include "ir/text.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "passes/pass_runner.h"
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

Graph add_node_to_main(Graph graph) {
  return graph.inputs().empty() ? std::move(graph) : add_node(std::move(graph));
}

Graph one_input() { return parse_graph("graph g(%x: f32[2]) { return }", ops::find_op); }

// Leaves one node of a program for init.
Split divide(Graph graph) {
  Graph init("init");
  init.call(ops::full, {}, ops::Full{.value = 1});
  return {std::move(init), std::move(graph)};
}

std::vector<Pass> table() {
  return {{.name = "simplify", .run = add_node, .minimum_level = 1},
          {.name = "round", .run = add_node, .minimum_level = 1, .changes_rounding = true},
          {.name = "hoist", .stage = Stage::kHoist, .run = divide},
          {.name = "fuse", .stage = Stage::kFuse, .run = add_node_to_main, .minimum_level = 2}};
}

Split run_all(PassRunner& runner) {
  Split split{Graph("init"), one_input()};
  for (const Stage stage : {Stage::kSimplify, Stage::kAdapt, Stage::kLayout, Stage::kHoist, Stage::kFuse})
    split = runner.run(stage, std::move(split));
  return split;
}

// Which passes run.
std::vector<std::string> runs(const PassOptions& options) {
  PassRunner runner(table(), options);
  run_all(runner);
  std::vector<std::string> names;
  for (const auto& timing : runner.timings()) names.push_back(timing.name);
  return names;
}

TEST(PassRunner, SkipsByNameLevelNumericsPlaceAndCount) {
  // Fusing runs on both graphs.
  EXPECT_THAT(runs({}), ElementsAre("simplify", "round", "hoist", "fuse", "fuse"));
  EXPECT_THAT(runs({.disabled = {"simplify"}}), ElementsAre("round", "hoist", "fuse", "fuse"));
  EXPECT_THAT(runs({.disabled = {"hoist"}}), ElementsAre("simplify", "round", "fuse", "fuse"));
  EXPECT_THAT(runs({.stop_after = "simplify"}), ElementsAre("simplify"));
  EXPECT_THAT(runs({.stop_after = "fuse"}), ElementsAre("simplify", "round", "hoist", "fuse", "fuse"));
  EXPECT_THAT(runs({.disabled = {"simplify"}, .stop_after = "simplify"}), IsEmpty());
  // Passes of level 0 are not optional.
  EXPECT_THAT(runs({.bisect_limit = BisectLimit{0}}), ElementsAre("hoist"));
  EXPECT_THAT(runs({.bisect_limit = BisectLimit{2}}), ElementsAre("simplify", "round", "hoist"));
  EXPECT_THAT(runs({.bisect_limit = BisectLimit{2, 1}}), ElementsAre("simplify", "round", "hoist", "fuse"));
  EXPECT_THAT(runs({.bisect_limit = BisectLimit{3}}), ElementsAre("simplify", "round", "hoist", "fuse"));
  EXPECT_THAT(runs({.level = 1}), ElementsAre("simplify", "round", "hoist"));
  EXPECT_THAT(runs({.level = 0}), ElementsAre("hoist"));
  EXPECT_THAT(runs({.strict = true}), ElementsAre("simplify", "hoist", "fuse", "fuse"));
}

TEST(PassRunner, WhatRunsChangesTheProgram) {
  PassRunner runner(table(), {});
  const Split split = run_all(runner);
  EXPECT_EQ(split.init.nodes().size(), 1U);
  EXPECT_EQ(split.main.nodes().size(), 3U);
}

TEST(PassRunner, UnknownNamesAreRefusedWithTheNearest) {
  try {
    PassRunner runner(table(), {.disabled = {"simplfy"}});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U004");
    EXPECT_THAT(error.details().advice, testing::HasSubstr("simplify"));
  }
}

TEST(PassRunner, VerifiesAndDumpsWhatChanged) {
  std::vector<std::string> dumped;
  const auto dump = [&](std::string_view pass, const Graph&) { dumped.emplace_back(pass); };
  const auto break_graph = [](Graph broken) {
    broken.set_operand(broken.nodes().front().get(), 0, nullptr);
    return broken;
  };
  PassRunner runner({{.name = "simplify", .run = add_node},
                     {.name = "nothing", .run = [](Graph same) { return same; }},
                     {.name = "break", .stage = Stage::kAdapt, .run = break_graph}},
                    {}, dump);
  Split split = runner.run(Stage::kSimplify, {Graph("init"), one_input()});
  EXPECT_THAT(dumped, ElementsAre("simplify"));
  EXPECT_THROW(runner.run(Stage::kAdapt, std::move(split)), InternalError);
}

TEST(Pipeline, RowsOfABackendRunFirstInTheirStage) {
  const auto same = [](Graph graph) { return graph; };
  const std::vector<Pass> table = pipeline({}, {{.name = "late", .stage = Stage::kFuse, .run = same},
                                                {.name = "merge", .stage = Stage::kLayout, .run = same},
                                                {.name = "widen", .stage = Stage::kAdapt, .run = same}});
  std::vector<std::string_view> names;
  for (const Pass& pass : table) {
    if (pass.stage != Stage::kSimplify) names.push_back(pass.name);
  }
  EXPECT_THAT(names, ElementsAre("widen", "merge", "assign_layouts", "hoist", "late", "fuse"));
}

// Every row of every backend that is linked.
TEST(Pipeline, EveryRowSaysWhyAndRunsOnAnEmptyGraph) {
  for (const Backend* backend : api::backends()) {
    const Target target{.backend = std::string(backend->name()), .device = backend->device("")};
    PassRunner runner({}, {});
    for (const Pass& pass : pipeline_for(*backend, target)) {
      EXPECT_NE(pass.why, "") << pass.name;
      const Split split = runner.run(pass, {Graph("init"), one_input()});
      EXPECT_EQ(to_string(split.main), to_string(one_input())) << pass.name;
    }
  }
}

}  // namespace
}  // namespace ingot::core
