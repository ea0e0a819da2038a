// SPDX-License-Identifier: Apache-2.0
// The structure of a graph as a key: every change of it shows, and nothing else does.
#include "compiler/canonical_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <random>
#include <set>

#include "ir/text.h"
#include "ops/model_source.h"
#include "ops/ops.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"
#include "tests/support/long_mode.h"

namespace ingot::core::test {
namespace {

std::string text_of(const Graph& graph) { return to_string(canonicalize(graph).graph, {.canonical = true}); }

// ---- Each attribute, dtype, size and range of each operator's samples, changed one at a time ----

std::optional<std::string> text_of(const Op& op, const Sample& sample, DType dtype = DType::kF32) {
  try {
    return text_of(make_sample_node(op, sample, dtype).graph);
  } catch (const UserError&) {
    return std::nullopt;  // the record refuses it
  }
}

std::optional<AttributeValue> another(const AttributeValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number + 1;
  if (const auto* number = std::get_if<double>(&value))
    return std::isfinite(*number) && *number != 0 ? std::nextafter(*number, 0) : 3.0;
  if (const auto* text = std::get_if<std::string>(&value)) return *text + "x";
  if (const auto* dtype = std::get_if<DType>(&value))
    return *dtype == DType::kF32 ? DType::kF64 : DType::kF32;
  if (const auto* dim = std::get_if<Dim>(&value)) return *dim + Dim(1);
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value); numbers && !numbers->empty()) {
    std::vector<int64_t> more = *numbers;
    ++more.front();
    return more;
  }
  if (const auto* numbers = std::get_if<std::vector<double>>(&value); numbers && !numbers->empty()) {
    std::vector<double> more = *numbers;
    more.front() += 1e-9;
    return more;
  }
  if (const auto* dims = std::get_if<std::vector<Dim>>(&value); dims && !dims->empty()) {
    std::vector<Dim> more = *dims;
    more.front() = more.front() + Dim(1);
    return more;
  }
  return std::nullopt;
}

class Structure : public ::testing::TestWithParam<const Op*> {};

TEST_P(Structure, ShowsEachChangeOfASample) {
  const Op& op = *GetParam();
  size_t changes = 0;
  for (Sample sample : op.samples()) {
    if (sample.attributes.empty()) sample.attributes = op.attributes.defaults();
    const std::optional<std::string> text = text_of(op, sample);
    ASSERT_TRUE(text);
    const auto expect_other = [&](const std::optional<std::string>& changed, const std::string& what) {
      if (!changed) return;
      ++changes;
      EXPECT_NE(*changed, *text) << what;
    };
    const bool has_f32 = std::ranges::any_of(
        sample.operands, [](const SampleOperand& operand) { return operand.type.dtype == DType::kF32; });
    if (has_f32) expect_other(text_of(op, sample, DType::kF64), "dtype");
    for (size_t i = 0; i < sample.attributes.size(); ++i) {
      Sample changed = sample;
      const std::optional<AttributeValue> value = another(sample.attributes[i]);
      if (value) changed.attributes[i] = *value;
      if (value) expect_other(text_of(op, changed), std::string(op.attributes.names()[i]));
    }
    for (size_t i = 0; i < sample.operands.size(); ++i) {
      for (size_t dim = 0; dim < sample.operands[i].type.rank(); ++dim) {
        Sample changed = sample;
        Dim& size = changed.operands[i].type.shape[dim];
        size = size + Dim(1);
        expect_other(text_of(op, changed), "a size");
      }
    }
    SampleGraph graph = make_sample_node(op, sample);
    for (auto& [name, info] : graph.graph.symbols) {
      const SymbolInfo before = info;
      info.range.max = 12345;
      expect_other(text_of(graph.graph), "range of " + name);
      info = before;
      info.typical = 77;
      expect_other(text_of(graph.graph), "typical size of " + name);
      info = before;
    }
  }
  EXPECT_GT(changes, 0u);
}

INSTANTIATE_TEST_SUITE_P(All, Structure, ::testing::ValuesIn(test::ops_with_samples()),
                         [](const auto& info) { return std::string(info.param->name); });

// ---- Random graphs, written in other ways, and changed in one point ----

constexpr int kWidth = 8;

Value* add_weight(Graph& graph, int64_t source) {
  const ops::ModelSource attributes{
      .name = "weight." + std::to_string(source), .shape = {kWidth}, .source = source};
  return graph.call(ops::weight, {}, attributes);
}

// One node of a random graph: its operands are earlier values, by number.
struct Recipe {
  struct Call {
    int op, a, b;
    bool operator==(const Call&) const = default;
  };
  int weights = 0;
  std::vector<Call> calls;
  std::vector<int> outputs;
  bool operator==(const Recipe&) const = default;
};

const Op* const kOps[] = {&ops::add, &ops::subtract, &ops::multiply, &ops::maximum};

Recipe random_recipe(std::mt19937& random, int calls) {
  Recipe recipe{.weights = 1 + static_cast<int>(random() % 3)};
  const int first = 2 + recipe.weights;
  const auto any = [&](int i) { return static_cast<int>(random() % static_cast<uint32_t>(first + i)); };
  for (int i = 0; i < calls; ++i) recipe.calls.push_back({static_cast<int>(random() % 4), any(i), any(i)});
  recipe.outputs = {first + calls - 1};
  if (random() % 2 == 0) recipe.outputs.push_back(any(calls));
  return recipe;
}

// `shuffle`: nodes and weights in another possible order, other names.
Graph make_graph(const Recipe& recipe, std::mt19937* shuffle) {
  Graph graph(shuffle ? "other" : "main");
  const std::string batch = shuffle ? "Z9" : "B";
  graph.symbols[batch] = {.range = {1, 16}};
  std::vector<Value*> values;
  for (const char* name : {"x", "y"})
    values.push_back(graph.add_input(shuffle ? std::string("other_") + name : name,
                                     {DType::kF32, {Dim::symbol(batch), kWidth}, {}}));
  std::vector<int64_t> sources(static_cast<size_t>(recipe.weights));
  for (size_t i = 0; i < sources.size(); ++i) sources[i] = static_cast<int64_t>(i);
  if (shuffle) std::ranges::shuffle(sources, *shuffle);
  for (const int64_t source : sources) values.push_back(add_weight(graph, source));
  values.resize(values.size() + recipe.calls.size(), nullptr);
  const size_t first = values.size() - recipe.calls.size();
  for (size_t done = 0; done < recipe.calls.size();) {
    size_t i = done;
    if (shuffle) {  // any that has its operands
      do i = (*shuffle)() % recipe.calls.size();
      while (values[first + i] != nullptr || values[static_cast<size_t>(recipe.calls[i].a)] == nullptr ||
             values[static_cast<size_t>(recipe.calls[i].b)] == nullptr);
    }
    const Recipe::Call& call = recipe.calls[i];
    values[first + i] = graph.call(
        *kOps[call.op], {values[static_cast<size_t>(call.a)], values[static_cast<size_t>(call.b)]});
    ++done;
  }
  for (const int output : recipe.outputs) graph.outputs.push_back(values[static_cast<size_t>(output)]);
  graph.erase_dead_nodes();
  return graph;
}

// What the outputs compute, written out as trees: an identity that needs no order of nodes.
std::string tree_of(const Value* value, std::map<const Value*, std::string>& weights) {
  if (value->producer == nullptr) return "input" + std::to_string(value->index);
  if (value->producer->op == &ops::weight)
    return weights.try_emplace(value, "weight" + std::to_string(weights.size())).first->second;
  const std::string a = tree_of(value->producer->operands[0], weights);
  return std::string(value->producer->op->name) + "(" + a + "," +
         tree_of(value->producer->operands[1], weights) + ")";
}

std::string trees_of(const Graph& graph) {
  std::map<const Value*, std::string> weights;
  std::string text;
  for (const Value* output : graph.outputs) text += tree_of(output, weights) + ";";
  return text;
}

int pairs() { return core::test::is_long_mode() ? 1'000'000 : 5'000; }

TEST(Structures, AreEqualForWhatIsWrittenInAnotherOrder) {
  std::mt19937 random(1);
  for (int i = 0; i < pairs() / 10; ++i) {
    const Recipe recipe = random_recipe(random, 1 + i % 9);
    ASSERT_EQ(text_of(make_graph(recipe, nullptr)), text_of(make_graph(recipe, &random)));
  }
}

// Small graphs, so that many pairs are isomorphic: equal texts are equal trees.
TEST(Structures, AreEqualOnlyForIsomorphicGraphs) {
  std::mt19937 random(2);
  std::map<std::string, std::string> known;
  int repeated = 0;
  for (int i = 0; i < pairs(); ++i) {
    const Graph graph = make_graph(random_recipe(random, 1 + i % 3), nullptr);
    const auto [entry, is_new] = known.try_emplace(text_of(graph), trees_of(graph));
    repeated += is_new ? 0 : 1;
    ASSERT_EQ(entry->second, trees_of(graph)) << entry->first;
  }
  EXPECT_GT(repeated, pairs() / 20);
}

TEST(Structures, LongChainsNeedNoStack) {
  Recipe recipe{.weights = 1};
  for (int i = 0; i < 20'000; ++i) recipe.calls.push_back({0, 2 + i, 0});
  recipe.outputs = {2 + 20'000};
  EXPECT_GT(text_of(make_graph(recipe, nullptr)).size(), 20'000u);
}

}  // namespace
}  // namespace ingot::core::test
