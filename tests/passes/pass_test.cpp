// SPDX-License-Identifier: Apache-2.0
// Runs each case of tests/passes/*.ir. With INGOT_UPDATE_TESTS=1 what the passes make is written into the
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/attributes.h"
#include "ops/ops.h"
#include "passes/hoist.h"
#include "passes/pipeline.h"
#include "passes/target_passes.h"
#include "tests/passes/pass_file.h"
#include "tests/passes/random_inputs.h"

namespace ingot::core {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/passes";

Graph parse(std::string_view text) { return parse_graph(text, ops::find_op); }
std::string print(const Graph& graph) {
  std::string text = to_string(graph);
  text.pop_back();  // the last line break
  return text;
}

bool is_update() { return std::getenv("INGOT_UPDATE_TESTS") != nullptr; }

void expect_same_values(const Graph& before, const Graph& after) {
  const RandomInputs random = random_inputs(before);
  EXPECT_EQ(difference(evaluate(before, random.inputs, random.weights),
                       evaluate(after, random.inputs, random.weights)),
            "");
}

void check_case(const PassRow& pass, PassCase& each) {
  SCOPED_TRACE(each.before);
  const Graph before = parse(each.before);
  verify(before, "parsing");
  Graph after = pass.run(before.clone());
  verify(after, pass.name);
  const std::string made = print(after);
  if (is_update()) each.after = made == print(before) ? "" : made;
  EXPECT_EQ(made, each.after.empty() ? print(before) : print(parse(each.after)));
  expect_same_values(before, after);
  EXPECT_EQ(print(pass.run(std::move(after))), made) << "a second run changes the graph";
}

// A target that takes whatever it is offered, and wants the channels of convolutions last.
Graph fuse_all(Graph graph) {
  const auto always = [](const Node&, const Node&) { return true; };
  return fuse(std::move(graph), {.may_take_consumer = always, .may_take_producer = always});
}
Graph assign_channels_last(Graph graph) {
  return assign_layouts(std::move(graph), [](const Node& node) {
    if (node.op != &ops::convolution) return LayoutRequest{};
    const Layout channels_last = Layout::permutation(std::vector{0, 2, 3, 1});
    return LayoutRequest{.operands = {channels_last}, .results = {channels_last}};
  });
}

Graph winograd_without_stride(Graph graph) {
  return use_winograd(std::move(graph), [](const Node& node) {
    return node.attributes<ops::Convolution>().stride == std::vector<int64_t>{1, 1};
  });
}

Graph widen_halves(Graph graph) {
  return widen_contractions(std::move(graph), [](const Node& node) {
    const DType own = node.results[0]->type.dtype;
    return own == DType::kBF16 || own == DType::kF16 ? DType::kF32 : own;
  });
}
Graph expand_all_transposed(Graph graph) {
  return expand_transposed_convolutions(std::move(graph), [](const Node&) { return true; });
}

std::vector<PassRow> passes() {
  std::vector<PassRow> rows(pipeline().begin(), pipeline().end());
  rows.push_back({"fuse", fuse_all, 2, false, ""});
  rows.push_back({"assign_layouts", assign_channels_last, 3, false, ""});
  rows.push_back({"use_winograd", winograd_without_stride, 3, true, ""});
  rows.push_back({"widen_contractions", widen_halves, 3, false, ""});
  rows.push_back({"expand_transposed_convolutions", expand_all_transposed, 3, false, ""});
  std::ranges::sort(rows, {}, &PassRow::name);
  const auto repeated = std::ranges::unique(rows, {}, &PassRow::name);
  rows.erase(repeated.begin(), repeated.end());
  return rows;
}

class PassFile : public testing::TestWithParam<PassRow> {};

TEST_P(PassFile, MakesWhatTheFileSays) {
  const std::filesystem::path path = kFolder / (std::string(GetParam().name) + ".ir");
  std::vector<PassCase> cases = read_pass_file(path);
  EXPECT_THAT(cases, testing::Not(testing::IsEmpty()));
  for (PassCase& each : cases) check_case(GetParam(), each);
  if (is_update()) write_pass_file(path, cases);
}

INSTANTIATE_TEST_SUITE_P(All, PassFile, testing::ValuesIn(passes()),
                         [](const auto& info) { return std::string(info.param.name); });

// Weights of main that init makes, beside those of the model.
TensorMap prepared(const Split& split, TensorMap weights) {
  const Evaluation init = evaluate(split.init, {}, weights);
  for (size_t i = 0; i < init.outputs.size(); ++i)
    weights.emplace(fmt::format("init.{}", i), init.outputs[i]);
  return weights;
}

// hoist makes two graphs: its file holds init, then main.
TEST(HoistFile, MakesWhatTheFileSays) {
  const std::filesystem::path path = kFolder / "hoist.ir";
  std::vector<PassCase> cases = read_pass_file(path);
  for (PassCase& each : cases) {
    SCOPED_TRACE(each.before);
    const Graph before = parse(each.before);
    const Split split = hoist(before.clone());
    verify(split.init, "hoist");
    verify(split.main, "hoist");
    const std::string made = print(split.init) + "\n" + print(split.main);
    if (is_update()) each.after = made;
    EXPECT_EQ(made, each.after);
    const RandomInputs random = random_inputs(before);
    EXPECT_EQ(difference(evaluate(before, random.inputs, random.weights),
                         evaluate(split.main, random.inputs, prepared(split, random.weights))),
              "");
  }
  if (is_update()) write_pass_file(path, cases);
}

}  // namespace
}  // namespace ingot::core
