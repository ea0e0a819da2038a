// SPDX-License-Identifier: Apache-2.0
#include "plan/plan.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/plan/planned_graph.h"

namespace ingot::core {
namespace {

using testing::filled;
using testing::PlannedGraph;

// Runs the plan, and compares with the evaluator, which has no notion of memory.
void expect_right(PlannedGraph& planned, const std::vector<Tensor>& inputs, const TensorMap& states = {}) {
  const auto actual = planned.run(inputs, states);
  const auto expected = planned.expected(inputs, states);
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < actual.outputs.size(); ++i)
    EXPECT_TRUE(testing::equal(actual.outputs[i], expected.outputs[i])) << "output " << i;
  for (const auto& [name, value] : expected.states)
    EXPECT_TRUE(testing::equal(actual.states.at(name), value)) << "state " << name;
}

TEST(Plan, ElementwiseChainsWorkInPlaceAndEndInTheOutput) {
  PlannedGraph planned(R"(graph main(%x: f32[B in 1..16, 8]) {
    %a = exp(%x) : f32[B, 8]
    %b = negate(%a) : f32[B, 8]
    %c = add(%b, %a) : f32[B, 8]
    return %c
  })",
                       {{"B", 4}});
  EXPECT_TRUE(planned.result_of("add").as<OutputStorage>());
  EXPECT_EQ(planned.report.arena, 4 * 8 * 4) << "one of the two operands is overwritten by the result";
  EXPECT_EQ(planned.copies(), 0u);
  for (const int64_t size : {1, 5, 16}) expect_right(planned, {filled({size, 8}, -1, 0.25F)});
}

TEST(Plan, OperandsThatAreNeededLaterAreKept) {
  PlannedGraph planned(R"(graph main(%x: f32[4]) {
    %a = exp(%x) : f32[4]
    %b = negate(%a) : f32[4]
    %c = multiply(%a, %b) : f32[4]
    return %b, %c
  })",
                       {});
  EXPECT_NE(&planned.memory("a"), &planned.memory("b"));
  expect_right(planned, {filled({4}, 0)});
}

TEST(Plan, ViewsShareTheirOperandsMemory) {
  PlannedGraph planned(R"(graph main(%x: f32[4, 6]) {
    %a = exp(%x) : f32[4, 6]
    %v = reshape(%a) {shape=[24]} : f32[24]
    %s = slice(%v) {axis=0, start=6, end=12} : f32[6]
    %y = negate(%s) : f32[6]
    return %y
  })",
                       {});
  EXPECT_EQ(&planned.memory("v"), &planned.memory("a"));
  EXPECT_EQ(&planned.memory("s"), &planned.memory("a"));
  EXPECT_EQ(planned.buffer("s").as<AliasStorage>()->offset, Dim(24));
  EXPECT_EQ(planned.report.lower_bound, 128);
  expect_right(planned, {filled({4, 6}, 0)});
}

TEST(Plan, OutputsThatAreInputsWeightsOrEqualAreCopied) {
  PlannedGraph planned(R"(graph main(%x: f32[3]) {
    %w = weight() {name="w", shape=[3]} : f32[3]
    %y = add(%x, %w) : f32[3]
    %v = reshape(%y) {shape=[3, 1]} : f32[3, 1]
    return %x, %w, %y, %y, %v
  })",
                       {});
  EXPECT_EQ(planned.copies(), 4u);
  expect_right(planned, {filled({3}, 1)});
}

TEST(Plan, ViewsOfOutputsLieInThem) {
  PlannedGraph planned(R"(graph main(%x: f32[2, 3]) {
    %y = exp(%x) : f32[2, 3]
    %v = reshape(%y) {shape=[6]} : f32[6]
    return %v
  })",
                       {});
  EXPECT_EQ(planned.copies(), 0u);
  EXPECT_EQ(planned.report.arena, 0);
  expect_right(planned, {filled({2, 3}, 0)});
}

constexpr const char* kCache = R"(graph main(%x: f32[1, 2], %at: i64[1]) {
  %k = state() {name="cache", shape=[4, 2]} : f32[4, 2]
  %k2 = index_copy(%k, %at, %x) {axis=0} : f32[4, 2]
  %s = sum(%k2) {axes=[0]} : f32[2]
  update %k = %k2
  return %s
})";

TEST(Plan, CachesAreUpdatedInPlace) {
  PlannedGraph planned(kCache, {});
  EXPECT_TRUE(planned.result_of("index_copy").as<StateStorage>());
  EXPECT_EQ(planned.copies(), 0u);
  Tensor at = make_tensor(DType::kI64, {1});
  const TensorMap states = {{"cache", filled({4, 2}, 10)}};
  expect_right(planned, {filled({1, 2}, 1), at}, states);
}

TEST(Plan, OldValuesOfStatesThatAreReadLaterAreSaved) {
  std::string text = kCache;
  text.replace(text.find("sum(%k2)"), 8, "sum(%k)");
  PlannedGraph planned(text, {});
  EXPECT_EQ(planned.copies(), 2u) << "into the new value before, into the state at the end";
  Tensor at = make_tensor(DType::kI64, {1});
  expect_right(planned, {filled({1, 2}, 1), at}, {{"cache", filled({4, 2}, 10)}});
}

// The value is one argument of the step: written in place, it would be read while it is overwritten.
TEST(Plan, WhatIsWrittenIntoItselfIsCopiedFirst) {
  PlannedGraph planned(R"(graph main(%x: f32[3, 2], %at: i64[3]) {
    %k = state() {name="k", shape=[3, 2]} : f32[3, 2]
    %a = exp(%x) : f32[3, 2]
    %b = index_copy(%a, %at, %a) {axis=0} : f32[3, 2]
    %k2 = index_copy(%k, %at, %k) {axis=0} : f32[3, 2]
    update %k = %k2
    return %b
  })",
                       {});
  EXPECT_EQ(planned.copies(), 3u) << "of both before they are written, and into the state at the end";
  Tensor at = make_tensor(DType::kI64, {3});
  for (int64_t i = 0; i < 3; ++i) write_integer(at.view(), std::vector{i}, (i + 1) % 3);
  expect_right(planned, {filled({3, 2}, 0, 0.125F), at}, {{"k", filled({3, 2}, 10)}});
}

// Two caches are written by one step, which computes something else beside.
constexpr const char* kRegion = R"(graph main(%x: f32[1, 2], %y: f32[1, 2], %at: i64[1]) {
  %k = state() {name="k", shape=[4, 2]} : f32[4, 2]
  %v = state() {name="v", shape=[4, 2]} : f32[4, 2]
  %k2, %v2, %e = fused(%x, %k, %at, %y, %v) {
      graph region(%x: f32[1, 2], %k: f32[4, 2], %at: i64[1], %y: f32[1, 2], %v: f32[4, 2]) {
        %a = exp(%x) : f32[1, 2]
        %k2 = index_copy(%k, %at, %a) {axis=0} : f32[4, 2]
        %v2 = index_copy(%v, %at, %y) {axis=0} : f32[4, 2]
        %e = negate(%y) : f32[1, 2]
        return %k2, %v2, %e
      }
    } : f32[4, 2], f32[4, 2], f32[1, 2]
  %s = sum(%k2) {axes=[0]} : f32[2]
  update %k = %k2
  update %v = %v2
  return %s, %e
})";
const TensorMap& two_caches() {
  static const TensorMap states = {{"k", filled({4, 2}, 10)}, {"v", filled({4, 2}, 20)}};
  return states;
}

TEST(Plan, RegionsWriteSeveralStatesInPlace) {
  PlannedGraph planned(kRegion, {});
  EXPECT_EQ(planned.copies(), 0u);
  expect_right(planned, {filled({1, 2}, 1), filled({1, 2}, 3), make_tensor(DType::kI64, {1})}, two_caches());
}

TEST(Plan, WhatARegionReadsBesidesIsCopiedFirst) {
  std::string text = kRegion;
  text.replace(text.find("negate(%y) : f32[1, 2]"), 22, "negate(%k) : f32[4, 2]");
  text.replace(text.find("f32[4, 2], f32[1, 2]\n  %s"), 20, "f32[4, 2], f32[4, 2]");
  PlannedGraph planned(text, {});
  EXPECT_EQ(planned.copies(), 2u) << "before k is written, and into the state at the end";
  expect_right(planned, {filled({1, 2}, 1), filled({1, 2}, 3), make_tensor(DType::kI64, {1})}, two_caches());
}

TEST(Plan, InPlaceUpdatesOfInputsCopyFirst) {
  PlannedGraph planned(R"(graph main(%x: f32[4, 2], %y: f32[1, 2], %at: i64[1]) {
    %r = index_copy(%x, %at, %y) {axis=0} : f32[4, 2]
    return %r
  })",
                       {});
  EXPECT_EQ(planned.copies(), 1u);
  const Tensor x = filled({4, 2}, 5);
  expect_right(planned, {x, filled({1, 2}, 1), make_tensor(DType::kI64, {1})});
  EXPECT_EQ(read_double(x.view(), std::vector<int64_t>{0, 0}), 5);
}

TEST(Plan, RunningValuesAreComputedInTheirState) {
  PlannedGraph planned(R"(graph main(%x: f32[3]) {
    %k = state() {name="k", shape=[3]} : f32[3]
    %n = add(%k, %x) : f32[3]
    %y = negate(%x) : f32[3]
    update %k = %n
    return %y
  })",
                       {});
  EXPECT_TRUE(planned.result_of("add").as<StateStorage>());
  EXPECT_EQ(planned.copies(), 0u);
  expect_right(planned, {filled({3}, 1)}, {{"k", filled({3}, 10)}});
}

TEST(Plan, StatesMayBeExchanged) {
  PlannedGraph planned(R"(graph main(%x: f32[3]) {
    %a = state() {name="a", shape=[3]} : f32[3]
    %b = state() {name="b", shape=[3]} : f32[3]
    %y = add(%a, %x) : f32[3]
    update %a = %b
    update %b = %a
    return %y
  })",
                       {});
  expect_right(planned, {filled({3}, 1)}, {{"a", filled({3}, 10)}, {"b", filled({3}, 20)}});
}

// Random graphs of elementwise operators, views, updates in place and reductions, at random sizes.
std::string random_graph(std::mt19937& random) {
  std::string text =
      "graph main(%v0: f32[B in 1..8, 6], %at: i64[1]) {\n  %k = state() {name=\"k\", shape=[5, 6]} : f32[5, "
      "6]\n";
  std::vector<std::string> full = {"v0"};
  int next = 1;
  const auto pick = [&](const std::vector<std::string>& names) {
    return "%" + names[names.size() - 1 - random() % std::min<size_t>(names.size(), 3)];
  };
  for (int i = 0; i < 12; ++i) {
    const std::string name = "v" + std::to_string(next++);
    const std::string type = " : f32[B, 6]\n";
    switch (random() % 6) {
      case 0:
        text += "  %" + name + " = negate(" + pick(full) + ")" + type;
        break;
      case 1:
      case 2:
        text += "  %" + name + " = add(" + pick(full) + ", " + pick(full) + ")" + type;
        break;
      case 3:
        text += "  %r" + name + " = reshape(" + pick(full) + ") {shape=[6*B]} : f32[6*B]\n";
        text += "  %n" + name + " = exp(%r" + name + ") : f32[6*B]\n";
        text += "  %" + name + " = reshape(%n" + name + ") {shape=[B, 6]}" + type;
        break;
      case 4:
        text += "  %s" + name + " = slice(" + pick(full) + ") {axis=0, start=0, end=1} : f32[1, 6]\n";
        text += "  %" + name + " = index_copy(" + pick(full) + ", %at, %s" + name + ") {axis=0}" + type;
        break;
      default:
        text += "  %" + name + " = softmax(" + pick(full) + ") {axis=1}" + type;
        break;
    }
    full.push_back(name);
  }
  text += "  %t = slice(" + pick(full) + ") {axis=0, start=0, end=1} : f32[1, 6]\n";
  text += "  %k2 = index_copy(%k, %at, %t) {axis=0} : f32[5, 6]\n  update %k = %k2\n";
  return text + "  return " + pick(full) + ", " + pick(full) + (random() % 2 ? ", %k2" : ", %k") + "\n}";
}

TEST(Plan, RandomGraphsComputeWhatTheEvaluatorDoes) {
  std::mt19937 random(21);
  for (int i = 0; i < 150; ++i) {
    const std::string text = random_graph(random);
    SCOPED_TRACE(text);
    PlannedGraph planned(text, {{"B", 4}});
    for (const int64_t size : {1, 3, 8}) {
      expect_right(planned, {filled({size, 6}, -1, 0.03F), make_tensor(DType::kI64, {1})},
                   {{"k", filled({5, 6}, 2)}});
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace ingot::core
