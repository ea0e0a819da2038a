// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/schema/schemas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "importers/aten/program/aten_text.h"
#include "support/error.h"

namespace ingot::core::aten {
namespace {

std::string arguments_of(const Node& node) {
  std::string text;
  for (const NamedArgument& argument : node.arguments)
    text += (text.empty() ? "" : ", ") + argument.name + "=" + to_string(argument.argument);
  return text;
}

std::string complete(std::string target, std::vector<NamedArgument> arguments) {
  Node node{.target = std::move(target), .name = "node", .arguments = std::move(arguments)};
  complete_arguments(node);
  return arguments_of(node);
}

constexpr ValueId kX = 0, kY = 1;

TEST(Schemas, FindsEveryLineOfTheTable) {
  std::ifstream table(INGOT_SOURCE_DIR "/src/importers/aten/schema/aten_schemas.def");
  int count = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.find(") -> ") == std::string::npos) continue;
    std::string name = line.substr(0, line.find('('));
    if (name.find('.') == std::string::npos) name += ".default";
    const auto schema = find_schema("aten." + name);
    ASSERT_TRUE(schema.has_value()) << line;
    EXPECT_EQ(schema->target, "aten." + name);
    ++count;
  }
  EXPECT_GT(count, 1300);
}

TEST(Schemas, SaysNothingOfWhatIsNoAten) {
  for (const char* target :
       {"_operator.add", "higher_order.cond", "aten.nothing.default", "aten.", "aten.add.default"})
    EXPECT_FALSE(find_schema(target).has_value()) << target;
}

TEST(Schemas, TellsKindsFormsAndAliases) {
  const Schema index = *find_schema("aten.index_put_.default");
  EXPECT_EQ(index.arguments[0].type.alias, "a");
  EXPECT_TRUE(index.arguments[0].type.is_written);
  EXPECT_TRUE(index.arguments[1].type.is_list && index.arguments[1].type.has_optional_elements);
  EXPECT_TRUE(index.returns[0].is_written);
  const Schema split = *find_schema("aten.split.Tensor");
  EXPECT_EQ(split.arguments[0].type.alias, "a");
  EXPECT_FALSE(split.arguments[0].type.is_written);
  EXPECT_TRUE(split.returns[0].is_list);
  EXPECT_EQ(split.returns[0].alias, "a");
  const Schema pool = *find_schema("aten.max_pool2d.default");
  EXPECT_EQ(pool.arguments[1].type.list_size, 2);
  EXPECT_EQ(pool.arguments[1].type.text, "int[2]");
  EXPECT_EQ(find_schema("aten.lstm.input")->returns.size(), 3u);
  EXPECT_TRUE(find_schema("aten._assert_scalar.default")->returns.empty());
  EXPECT_TRUE(find_schema("aten.gelu.default")->arguments[1].is_keyword_only);
}

TEST(Schemas, TellsWhatTorchsTablesSay) {
  EXPECT_EQ(find_schema("aten.add.Tensor")->promotion, Promotion::kDefault);
  EXPECT_EQ(find_schema("aten.atan2.default")->promotion, Promotion::kIntToFloat);
  EXPECT_EQ(find_schema("aten.eq.Scalar")->promotion, Promotion::kAlwaysBool);
  EXPECT_EQ(find_schema("aten.pow.Tensor_Scalar")->promotion, Promotion::kBoolToLong);
  EXPECT_EQ(find_schema("aten.abs_.default")->promotion, Promotion::kComplexToFloat);
  EXPECT_EQ(find_schema("aten.linear.default")->promotion, Promotion::kNone);
  EXPECT_TRUE(find_schema("aten.transpose_.default")->is_inplace_view);
  EXPECT_FALSE(find_schema("aten.add_.Tensor")->is_inplace_view);
  for (const char* target :
       {"aten.rand.default", "aten.normal_.default", "aten.bernoulli.p", "aten.poisson.default"})
    EXPECT_TRUE(draws_random_numbers(target)) << target;
  // Dropout and attention draw only in training.
  for (const char* target : {"aten.dropout.default", "aten.scaled_dot_product_attention.default",
                             "aten.sort.default", "_operator.add"})
    EXPECT_FALSE(draws_random_numbers(target)) << target;
}

TEST(CompleteArguments, FillsDefaultsInOrder) {
  EXPECT_EQ(complete("aten.layer_norm.default",
                     {{"input", {kX}}, {"normalized_shape", {ArgumentList{{int64_t{8}}}}}}),
            "input=%0, normalized_shape=[8], weight=none, bias=none, eps=1e-05, cudnn_enable=true");
  EXPECT_EQ(complete("aten.add.Tensor", {{"", {kX}}, {"", {kY}}}), "self=%0, other=%1, alpha=1");
  EXPECT_EQ(complete("aten.gelu.default", {{"", {kX}}}), "self=%0, approximate=\"none\"");
}

TEST(CompleteArguments, ConvertsAsTheDispatcherDoes) {
  EXPECT_EQ(complete("aten.max_pool2d.default", {{"", {kX}}, {"", {int64_t{3}}}}),
            "self=%0, kernel_size=[3, 3], stride=[], padding=[0, 0], dilation=[1, 1], ceil_mode=false");
  EXPECT_EQ(complete("aten.dropout.default", {{"", {kX}}, {"", {int64_t{0}}}, {"", {int64_t{0}}}}),
            "input=%0, p=0.0, train=false");
  EXPECT_EQ(complete("aten.mul.Tensor", {{"", {kX}}, {"", {2.5}}}), "self=%0, other=2.5");
}

TEST(CompleteArguments, LeavesForeignTargetsAlone) {
  EXPECT_EQ(complete("higher_order.cond", {{"", {kX}}}), "=%0");
}

void expect_refused(std::string target, std::vector<NamedArgument> arguments, const char* message) {
  try {
    complete(target, std::move(arguments));
    FAIL() << target;
  } catch (const UserError& error) {
    EXPECT_EQ(error.details().code, "INGOT-U510");
    EXPECT_EQ(error.details().node, "node");
    EXPECT_THAT(error.details().message, ::testing::HasSubstr(message));
  }
}

TEST(CompleteArguments, RefusesWhatTheSchemaDoesNotSay) {
  expect_refused("aten.relu.default", {}, "'self' is missing");
  expect_refused("aten.relu.default", {{"", {kX}}, {"", {kY}}}, "more positional arguments");
  expect_refused("aten.relu.default", {{"self", {kX}}, {"inplace", {true}}}, "no argument 'inplace'");
  expect_refused("aten.relu.default", {{"", {kX}}, {"self", {kX}}}, "given twice");
  expect_refused("aten.relu.default", {{"self", {std::string("x")}}},
                 "is \"x\", but the schema requires Tensor");
  expect_refused("aten.gelu.default", {{"", {kX}}, {"", {std::string("tanh")}}}, "more positional arguments");
  expect_refused("aten.view.default", {{"", {kX}}, {"size", {ArgumentList{{2.5}}}}}, "SymInt[]");
}

}  // namespace
}  // namespace ingot::core::aten
