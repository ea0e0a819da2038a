// SPDX-License-Identifier: Apache-2.0
// Every pass and every rule of the table, turned off: for all nodes, for some, and after a number of changes.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "passes/check_disabled.h"
#include "passes/pass_runner.h"
#include "passes/pipeline.h"
#include "support/error.h"
#include "tests/passes/all_passes.h"
#include "tests/passes/pass_file.h"
#include "tests/passes/random_inputs.h"

namespace ingot::core {
namespace {

const std::filesystem::path kCases = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/passes";

// With the names that nodes of a user's model have.
Graph parse_named(std::string_view text) {
  Graph graph = parse_graph(text, ops::find_op);
  for (const auto& node : graph.nodes()) node->name = node->results.empty() ? "" : node->results[0]->name;
  return graph;
}

std::vector<Graph> graphs_for(const Pass& pass) {
  std::vector<Graph> graphs;
  for (const PassCase& each : read_pass_file(kCases / (std::string(pass.name) + ".ir")))
    graphs.push_back(parse_named(each.before));
  return graphs;
}

struct Ran {
  Split split;
  std::vector<Rewrite> rewrites;
};

Ran run_with(const std::vector<Pass>& table, const Graph& graph, const PassOptions& options) {
  PassRunner runner(table, options);
  Ran ran{.split = {Graph("init"), graph.clone()}, .rewrites = {}};
  for (const Pass& pass : table) ran.split = runner.run(pass, std::move(ran.split));
  for (const PassRunner::Timing& run : runner.timings())
    ran.rewrites.insert(ran.rewrites.end(), run.rewrites.begin(), run.rewrites.end());
  return ran;
}

void expect_same_results(const Graph& before, const Split& after, double tolerance) {
  const RandomInputs random = random_inputs(before);
  TensorMap weights = random.weights;
  const Evaluation init = evaluate(after.init, {}, weights);
  for (size_t i = 0; i < init.outputs.size(); ++i)
    weights.emplace(fmt::format("init.{}", i), init.outputs[i]);
  EXPECT_EQ(difference(evaluate(before, random.inputs, random.weights),
                       evaluate(after.main, random.inputs, weights), tolerance),
            "");
}

// lower_precision is there to round.
double tolerance_of(std::string_view pass) { return pass == "lower_precision" ? 0.02 : kTolerance; }

bool is_selective(const Pass& pass) { return std::holds_alternative<RewritePass>(pass.run); }

class DisabledPass : public testing::TestWithParam<Pass> {};

TEST_P(DisabledPass, LeavesEveryGraphAsItIs) {
  for (const Graph& graph : graphs_for(GetParam())) {
    const Ran ran = run_with({GetParam()}, graph, {.disabled = {std::string(GetParam().name)}});
    EXPECT_EQ(to_string(ran.split.main), to_string(graph));
    EXPECT_TRUE(ran.split.init.nodes().empty());
  }
}

// What an optional pass changes, it asked for: else nothing could turn it off for a node.
TEST_P(DisabledPass, AsksBeforeItChangesANode) {
  const Pass& pass = GetParam();
  EXPECT_TRUE(is_selective(pass) || pass.minimum_level == 0) << "an optional pass is a RewritePass";
  if (!is_selective(pass)) return;
  for (Graph& graph : graphs_for(pass)) {
    graph.erase_dead_nodes();  // most passes do so at their end
    const std::string before = to_string(graph);
    const Ran whole = run_with({pass}, graph, {});
    EXPECT_EQ(whole.rewrites.empty(), to_string(whole.split.main) == before) << before;
    const Ran nothing = run_with({pass}, graph, {.disabled = {std::string(pass.name) + "@*"}});
    EXPECT_EQ(to_string(nothing.split.main), before);
    EXPECT_THAT(nothing.rewrites, testing::IsEmpty());
  }
}

TEST_P(DisabledPass, LeavesTheNamedNodesAlone) {
  const Pass& pass = GetParam();
  for (const Graph& graph : graphs_for(pass)) {
    std::set<std::string> nodes;
    for (const Rewrite& rewrite : run_with({pass}, graph, {}).rewrites) nodes.insert(rewrite.node);
    for (const std::string& node : nodes) {
      const Ran ran = run_with({pass}, graph, {.disabled = {fmt::format("{}@{}", pass.name, node)}});
      for (const Rewrite& rewrite : ran.rewrites) EXPECT_NE(rewrite.node, node);
      expect_same_results(graph, ran.split, tolerance_of(pass.name));
    }
  }
}

// bisect_passes relies on it: a graph is right after any number of changes.
TEST_P(DisabledPass, IsRightAfterAnyNumberOfChanges) {
  const Pass& pass = GetParam();
  if (pass.minimum_level == 0) return;
  const int64_t earlier = pass.stage > Stage::kHoist ? 1 : 0;  // the run on init
  for (const Graph& graph : graphs_for(pass)) {
    const auto count = std::ssize(run_with({pass}, graph, {}).rewrites);
    for (int64_t changes = 0; changes < count; ++changes) {
      const Ran ran = run_with({pass}, graph, {.bisect_limit = BisectLimit{earlier, changes}});
      EXPECT_EQ(std::ssize(ran.rewrites), changes);
      expect_same_results(graph, ran.split, tolerance_of(pass.name));
    }
  }
}

TEST_P(DisabledPass, EachOfItsRulesIsAppliedByACaseUnlessTurnedOff) {
  const Pass& pass = GetParam();
  std::set<std::string_view> unused(pass.rules.begin(), pass.rules.end());
  EXPECT_EQ(unused.size(), pass.rules.size()) << "names of rules are unique";
  for (const Graph& graph : graphs_for(pass)) {
    std::set<std::string> applied;
    for (const Rewrite& rewrite : run_with({pass}, graph, {}).rewrites) applied.insert(rewrite.rule);
    for (const std::string& rule : applied) {
      unused.erase(rule);
      if (rule.empty()) continue;
      const Ran ran = run_with({pass}, graph, {.disabled = {fmt::format("{}.{}", pass.name, rule)}});
      for (const Rewrite& rewrite : ran.rewrites) EXPECT_NE(rewrite.rule, rule);
      expect_same_results(graph, ran.split, tolerance_of(pass.name));
    }
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(unused, " ")), "") << "add a case to " << pass.name << ".ir";
}

INSTANTIATE_TEST_SUITE_P(All, DisabledPass, testing::ValuesIn(all_passes()),
                         [](const auto& info) { return std::string(info.param.name); });

std::vector<Pass> neutral_table() {
  const auto always = [](const Node&, const Node&) { return true; };
  return pipeline({.layouts = [](const Node&) { return LayoutRequest{}; },
                   .fuse = {always, always, always, always},
                   .precision = {},
                   .quantized = {}});
}

// Each pass alone, and random subsets, over all cases of all passes that come before layouts.
TEST(DisabledPasses, ResultsStayRightWithoutAnyOfThem) {
  const std::vector<Pass> table = neutral_table();
  std::set<std::string> names;
  for (const Pass& pass : table) names.emplace(pass.name);
  std::vector<std::string> choices(names.begin(), names.end());
  std::mt19937 random(20);
  size_t turn = 0;
  for (const Pass& pass : table) {
    if (pass.stage != Stage::kSimplify) continue;
    for (const Graph& graph : graphs_for(pass)) {
      PassOptions alone{.disabled = {choices[turn++ % choices.size()]}}, some;
      for (const std::string& name : choices) {
        if (random() % 3 == 0) some.disabled.push_back(name);
      }
      for (const PassOptions& options : {alone, some}) {
        SCOPED_TRACE(
            fmt::format("{}\nwithout {}", to_string(graph), testing::PrintToString(options.disabled)));
        expect_same_results(graph, run_with(table, graph, options).split, kTolerance);
      }
    }
  }
}

TEST(DisabledPasses, LevelZeroRunsNothingOptional) {
  for (const Pass& pass : all_passes()) {
    for (const Graph& graph : graphs_for(pass)) {
      PassRunner runner(all_passes(), {.level = 0});
      Split split{Graph("init"), graph.clone()};
      split = runner.run(pass, std::move(split));
      for (const PassRunner::Timing& run : runner.timings()) EXPECT_FALSE(run.is_optional) << run.name;
      if (is_optional(pass)) {
        EXPECT_EQ(to_string(split.main), to_string(graph)) << pass.name;
      }
    }
  }
}

// What a bad entry answers: (entry, code, part of the message or the advice).
TEST(DisabledPasses, WhatDoesNotExistOrCannotBeIsRefused) {
  struct Row {
    std::string entry, code, text;
  };
  const Row rows[] = {
      {"simplfy", "INGOT-U004", "the nearest is \"simplify\""},
      {"add_zero", "INGOT-U004", "the rule is \"simplify.add_zero\""},
      {"simplify.ad_zero", "INGOT-U004", "the nearest is \"add_zero\""},
      {"simplify.gelu*", "INGOT-U004", "has no rule"},
      {"fuse.gelu", "INGOT-U004", "has no rules"},
      {"simplify.", "INGOT-U004", "names nothing"},
      {"simplify@", "INGOT-U004", "names nothing"},
      {"simplify.@x", "INGOT-U004", "names nothing"},
      {"@x", "INGOT-U004", "names nothing"},
      {"decompose@x", "INGOT-U031", "cannot be turned off for single nodes"},
      {"hoist@*", "INGOT-U031", "cannot be turned off for single nodes"},
  };
  const std::vector<Pass> table = neutral_table();
  for (const Row& row : rows) {
    try {
      checked_disabled(table, {row.entry});
      ADD_FAILURE() << row.entry;
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, row.code) << row.entry;
      EXPECT_THAT(std::string(error.what()), testing::HasSubstr(row.text)) << row.entry;
    }
  }
}

TEST(DisabledPasses, EntriesWithoutANodeAreTold) {
  const Graph graph = parse_named("graph g(%x: f32[2]) {\n  %y = exp(%x) : f32[2]\n  return %y\n}");
  EXPECT_THAT(entries_without_node(graph, {"fuse@y", "fuse@z*", "simplify.add_zero@?", "simplify"}),
              testing::ElementsAre("fuse@z*"));
}

}  // namespace
}  // namespace ingot::core
