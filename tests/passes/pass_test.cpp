// SPDX-License-Identifier: Apache-2.0
// Runs each case of tests/passes/*.ir. With INGOT_UPDATE_TESTS=1 what the passes make is written into the
// files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "ir/text.h"
#include "ir/verify.h"
#include "ops/ops.h"
#include "passes/pipeline.h"
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

class PassFile : public testing::TestWithParam<std::string> {};

TEST_P(PassFile, MakesWhatTheFileSays) {
  const PassRow* pass = find_pass(GetParam());
  ASSERT_NE(pass, nullptr) << "the file is named like no pass";
  const std::filesystem::path path = kFolder / (GetParam() + ".ir");
  std::vector<PassCase> cases = read_pass_file(path);
  EXPECT_THAT(cases, testing::Not(testing::IsEmpty()));
  for (PassCase& each : cases) check_case(*pass, each);
  if (is_update()) write_pass_file(path, cases);
}

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const PassRow& row : pipeline()) names.emplace_back(row.name);
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, PassFile, testing::ValuesIn(pass_names()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ingot::core
