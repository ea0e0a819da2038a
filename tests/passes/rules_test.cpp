// SPDX-License-Identifier: Apache-2.0
// Each rule of elementwise terms, with operands of every dtype: what it makes of a graph gives what the graph
// gave, for combinations of the ends of the dtype's range, zeros, infinities and NaN.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "evaluate/evaluate.h"
#include "ir/text.h"
#include "ops/generate.h"
#include "ops/ops.h"
#include "ops/select.h"
#include "passes/simplify/rules.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using rewriting::Rule, rewriting::Term;

constexpr DType kElementDTypes[] = {DType::kBool, DType::kU8,  DType::kI8,  DType::kI16, DType::kI32,
                                    DType::kI64,  DType::kU16, DType::kU32, DType::kU64, DType::kF16,
                                    DType::kBF16, DType::kF32, DType::kF64};

std::vector<double> edge_values(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (is_floating(dtype)) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return {0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -7.25, 0.01, 60, -60, kInfinity, -kInfinity, std::nan("")};
  }
  const int bits = bit_width(dtype) - (is_signed(dtype) ? 1 : 0);
  // 2^53 bounds what a double holds.
  const double most = bits < 53 ? std::ldexp(1, bits) - 1 : std::ldexp(1, 53);
  std::vector<double> values = {0, 1, 2, 3, 7, most, most - 1, std::floor(most / 2)};
  if (is_signed(dtype)) {
    for (const double value : {-1.0, -2.0, -3.0, -most, -most + 1}) values.push_back(value);
    values.push_back(bits < 53 ? -most - 1 : -most);
  }
  return values;
}

// What a rule's term becomes: words are inputs of one element per combination of values, `a` and `b` numbers.
struct Instance {
  Graph graph{"rule"};
  std::vector<std::pair<std::string, DType>> inputs;
};

class TermWriter {
 public:
  struct Choice {
    DType words;
    double a = 0, b = 0;
    std::vector<DType> conversions;  // of the term's `convert` nodes, from the inside out
  };
  TermWriter(Instance& instance, const Choice& choice, int64_t elements)
      : instance_(instance), choice_(choice), elements_(elements) {}

  Value* write(const Term& term, DType numbers) {
    switch (term.kind) {
      case Term::Kind::kAny:
        return word(term.name, numbers);
      case Term::Kind::kNumber:
        return rewriting::add_number(instance_.graph, term.number, numbers);
      case Term::Kind::kCall:
        return call(term);
    }
    return nullptr;
  }

 private:
  Value* word(const std::string& name, DType numbers) {
    if (name == "a") return rewriting::add_number(instance_.graph, choice_.a, numbers);
    if (name == "b") return rewriting::add_number(instance_.graph, choice_.b, numbers);
    if (const auto found = words_.find(name); found != words_.end()) return found->second;
    const DType dtype = name == "c" ? DType::kBool : choice_.words;
    instance_.inputs.emplace_back(name, dtype);
    return words_[name] = instance_.graph.add_input(name, {dtype, {elements_}});
  }

  // Numbers have the dtype of the values beside them; a condition is a bool.
  Value* call(const Term& term) {
    std::vector<Value*> operands(term.operands.size());
    DType numbers = choice_.words;
    const auto is_condition = [&](size_t i) { return term.op == &ops::select && i == 0; };
    const auto is_written_later = [](const Term& each) {
      return each.kind == Term::Kind::kNumber || each.name == "a" || each.name == "b";
    };
    for (size_t i = 0; i < operands.size(); ++i) {
      if (is_written_later(term.operands[i])) continue;
      operands[i] = write(term.operands[i], choice_.words);
      if (!is_condition(i)) numbers = operands[i]->type.dtype;
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i] == nullptr)
        operands[i] = write(term.operands[i], is_condition(i) ? DType::kBool : numbers);
    }
    if (term.op == &ops::convert)
      return instance_.graph.call(ops::convert, operands, ops::Convert{choice_.conversions.at(converted_++)});
    return instance_.graph.call(*term.op, operands,
                                term.values.empty() ? term.op->attributes.defaults() : term.values);
  }

  Instance& instance_;
  const Choice& choice_;
  int64_t elements_;
  size_t converted_ = 0;
  std::map<std::string, Value*> words_;
};

void collect_words(const Term& term, std::set<std::string>& words) {
  if (term.kind == Term::Kind::kAny) words.insert(term.name);
  for (const Term& operand : term.operands) collect_words(operand, words);
}

// So many that each combination of the words' values occurs.
int64_t count_combinations(const Term& term, DType dtype) {
  std::set<std::string> words;
  collect_words(term, words);
  int64_t count = 1;
  for (const std::string& word : words) {
    if (word == "a" || word == "b") continue;
    count *= static_cast<int64_t>(edge_values(word == "c" ? DType::kBool : dtype).size());
  }
  return count;
}

int count_conversions(const Term& term) {
  int count = term.op == &ops::convert;
  for (const Term& operand : term.operands) count += count_conversions(operand);
  return count;
}

// Element i of word k is one of its edge values, so that all combinations occur.
std::vector<Tensor> combinations(const Instance& instance, int64_t elements) {
  std::vector<Tensor> tensors;
  size_t stride = 1;
  for (const auto& [name, dtype] : instance.inputs) {
    const std::vector<double> values = edge_values(dtype);
    Tensor tensor = make_tensor(dtype, {elements});
    for (int64_t i = 0; i < elements; ++i) {
      const double value = values[static_cast<size_t>(i) / stride % values.size()];
      const int64_t index[] = {i};
      if (is_floating(dtype)) {
        write_double(tensor.view(), index, value);
      } else {
        write_integer(tensor.view(), index, static_cast<int64_t>(value));
      }
    }
    stride *= values.size();
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// What rounding explains: some units in the last place.
double unit_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return std::ldexp(1, -10);
    case DType::kBF16:
      return std::ldexp(1, -7);
    case DType::kF32:
      return std::ldexp(1, -23);
    case DType::kF64:
      return std::ldexp(1, -52);
    default:
      return 0;
  }
}

std::string first_difference(const Tensor& before, const Tensor& after, std::span<const Tensor> inputs,
                             double units) {
  if (before.dtype != after.dtype || before.shape != after.shape) return "types differ";
  for (int64_t i = 0; i < before.elements(); ++i) {
    const int64_t index[] = {i};
    const double x = read_double(before.view(), index), y = read_double(after.view(), index);
    const double tolerance = units * unit_of(before.dtype) * std::max(std::abs(x), 1.0);
    if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance) continue;
    std::string text = fmt::format("{} became {} for", x, y);
    for (const Tensor& input : inputs) text += fmt::format(" {}", read_double(input.view(), index));
    return text;
  }
  return "";
}

struct Outcome {
  bool applied = false;
  std::string problem;
};

// One rule alone, on one choice of dtypes. Terms that the operators refuse do not count.
Outcome try_rule(const Rule& rule, const TermWriter::Choice& choice, double units) {
  const Term from = rewriting::parse_term(rule.from);
  const int64_t elements = count_combinations(from, choice.words);
  Instance instance;
  try {
    TermWriter writer(instance, choice, elements);
    instance.graph.outputs = {writer.write(from, choice.words)};
  } catch (const Error&) {
    return {};
  }
  const std::vector<Tensor> inputs = combinations(instance, elements);
  Evaluation before;
  try {
    before = evaluate(instance.graph, inputs, {});
  } catch (const Error&) {
    return {};
  }
  Rewrites rewrites;
  const std::span<const Rule> table(&rule, 1);
  const std::string text = to_string(instance.graph);
  const Graph after = rewriting::rewrite(std::move(instance.graph), {table}, rewrites);
  if (rewrites.made().empty()) return {};
  const Evaluation made = evaluate(after, inputs, {});
  std::string problem = first_difference(before.outputs[0], made.outputs[0], inputs, units);
  if (!problem.empty()) problem += "\n" + text + to_string(after);
  return {true, problem};
}

// All sequences of `count` dtypes.
std::vector<std::vector<DType>> sequences(int count) {
  std::vector<std::vector<DType>> all = {{}};
  for (int i = 0; i < count; ++i) {
    std::vector<std::vector<DType>> longer;
    for (const auto& each : all) {
      for (const DType dtype : kElementDTypes) {
        longer.push_back(each);
        longer.back().push_back(dtype);
      }
    }
    all = std::move(longer);
  }
  return all;
}

std::vector<TermWriter::Choice> choices_of(const Rule& rule) {
  const Term from = rewriting::parse_term(rule.from);
  std::set<std::string> words;
  collect_words(from, words);
  std::vector<TermWriter::Choice> choices;
  for (const DType dtype : kElementDTypes) {
    for (const auto& conversions : sequences(count_conversions(from))) {
      const std::vector<double> numbers = edge_values(dtype);
      const std::vector<double> none = {0};
      for (const double a : words.contains("a") ? numbers : none) {
        for (const double b : words.contains("b") ? numbers : none)
          choices.push_back({dtype, a, b, conversions});
      }
    }
  }
  return choices;
}

class ElementwiseRule : public testing::TestWithParam<std::pair<const Rule*, double>> {};

TEST_P(ElementwiseRule, KeepsResultsOfEveryDType) {
  const auto& [rule, units] = GetParam();
  int applied = 0;
  for (const TermWriter::Choice& choice : choices_of(*rule)) {
    const Outcome outcome = try_rule(*rule, choice, units);
    applied += outcome.applied;
    EXPECT_EQ(outcome.problem, "") << name(choice.words);
  }
  EXPECT_GT(applied, 0);
}

std::vector<std::pair<const Rule*, double>> elementwise_rules() {
  std::vector<std::pair<const Rule*, double>> rules;
  const auto add = [&](std::span<const Rule> table, double units) {
    for (const Rule& rule : table) rules.emplace_back(&rule, units);
  };
  add(rewriting::algebra_rules(), 4);
  add(rewriting::logic_rules(), 0);
  add(rewriting::conversion_rules(), 0);
  add(rewriting::activation_rules(), 16);
  return rules;
}

INSTANTIATE_TEST_SUITE_P(All, ElementwiseRule, testing::ValuesIn(elementwise_rules()),
                         [](const auto& info) { return std::string(info.param.first->name); });

}  // namespace
}  // namespace ingot::core
