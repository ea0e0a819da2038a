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
#include "ops/ops.h"
#include "passes/pass_runner.h"
#include "passes/pipeline.h"
#include "tests/passes/all_passes.h"
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

// Weights of main that init makes, beside those of the model.
TensorMap prepared(const Split& split, TensorMap weights) {
  const Evaluation init = evaluate(split.init, {}, weights);
  for (size_t i = 0; i < init.outputs.size(); ++i)
    weights.emplace(fmt::format("init.{}", i), init.outputs[i]);
  return weights;
}

// lower_precision is there to round: f16 has eleven significant bits, bf16 eight. split_norms rounds scaled
// weights of f16.
double tolerance_of(const Pass& pass) {
  return pass.name == "lower_precision" || pass.name == "split_norms" ? 0.02 : kTolerance;
}

void expect_same_values(const Graph& before, const Split& after, double tolerance) {
  const RandomInputs random = random_inputs(before);
  EXPECT_EQ(difference(evaluate(before, random.inputs, random.weights),
                       evaluate(after.main, random.inputs, prepared(after, random.weights)), tolerance),
            "");
}

// What `hoist` splits is printed as init, then main.
std::string print(const Split& split) {
  return split.init.nodes().empty() ? print(split.main) : print(split.init) + "\n" + print(split.main);
}

void check_case(const Pass& pass, PassCase& each) {
  SCOPED_TRACE(each.before);
  const Graph before = parse(each.before);
  verify(before, "parsing");
  PassRunner runner({}, {});
  Split after = runner.run(pass, {Graph("init"), before.clone()});
  const std::string made = print(after);
  if (is_update()) each.after = made == print(before) ? "" : made;
  EXPECT_EQ(made, each.after.empty() ? print(before) : each.after);
  expect_same_values(before, after, tolerance_of(pass));
  const std::string main = print(after.main);
  after = runner.run(pass, {Graph("init"), std::move(after.main)});
  EXPECT_EQ(print(after), main) << "a second run changes the graph";
}

class PassFile : public testing::TestWithParam<Pass> {};

TEST_P(PassFile, MakesWhatTheFileSays) {
  const std::filesystem::path path = kFolder / (std::string(GetParam().name) + ".ir");
  std::vector<PassCase> cases = read_pass_file(path);
  EXPECT_THAT(cases, testing::Not(testing::IsEmpty()));
  for (PassCase& each : cases) check_case(GetParam(), each);
  if (is_update()) write_pass_file(path, cases);
}

INSTANTIATE_TEST_SUITE_P(All, PassFile, testing::ValuesIn(all_passes()),
                         [](const auto& info) { return std::string(info.param.name); });

// A file of cases that no row runs would rot.
TEST(PassFiles, EachHasAPass) {
  const std::vector<Pass> all = all_passes();
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".ir" || !INGOT_HAS_LLVM) continue;  // the CPU's rows come with LLVM
    EXPECT_NE(find_pass(all, entry.path().stem().string()), nullptr) << entry.path();
  }
}

}  // namespace
}  // namespace ingot::core
