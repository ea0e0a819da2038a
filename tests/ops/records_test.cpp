// SPDX-License-Identifier: Apache-2.0
// Every record is complete, and every sample of every record infers, lowers, runs and survives the text form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/text.h"
#include "ir/verify.h"
#include "loops/kernel.h"
#include "ops/ops.h"
#include "routines/routine_table.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"
#include "types/symbol_name.h"

namespace ingot::core::test {
namespace {

class Records : public ::testing::TestWithParam<const Op*> {
 protected:
  const Op& op() const { return *GetParam(); }
  bool computes() const {
    return !op().traits.has(Trait::kSource) && !op().traits.has(Trait::kFused) &&
           !op().traits.has(Trait::kControlFlow);
  }
  std::vector<Sample> samples() const { return op().samples ? op().samples() : std::vector<Sample>{}; }
};

std::string record_name(const ::testing::TestParamInfo<const Op*>& info) {
  return std::string(info.param->name);
}

bool floats(const Sample& sample) {
  return std::ranges::any_of(sample.operands,
                             [](const SampleOperand& operand) { return operand.type.dtype == DType::kF32; });
}

TEST(Ops, NamesAreSortedAndFound) {
  const auto ops = ops::all_ops();
  EXPECT_TRUE(std::ranges::is_sorted(ops, {}, &Op::name));
  for (const Op* op : ops) EXPECT_EQ(ops::find_op(op->name), op);
  EXPECT_EQ(ops::find_op("no_such_op"), nullptr);
}

TEST_P(Records, HasOneMeaning) {
  EXPECT_FALSE(op().summary.empty());
  if (!computes()) return;
  EXPECT_NE(op().infer, nullptr);
  EXPECT_EQ((op().lower != nullptr) + (op().decompose != nullptr) + !op().routine.empty(), 1);
  EXPECT_FALSE(samples().empty());
  EXPECT_TRUE(op().routine.empty() || find_routine(op().routine) != nullptr);
}

TEST_P(Records, SamplesRun) {
  for (const Sample& sample : samples()) {
    const SampleGraph made = make_sample_graph(op(), sample);
    verify(made.graph, "sample", OutputLayouts::kAny);
    if (op().lower) loops::verify(op().lower(*made.node));
    const std::vector<Tensor> results = evaluate_sample(made);
    ASSERT_EQ(results.size(), made.node->results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorType& type = made.node->results[i]->type;
      EXPECT_EQ(results[i].dtype, type.dtype);
      for (size_t d = 0; d < type.rank(); ++d)
        EXPECT_EQ(results[i].shape[d], evaluate(type.shape[d], made.symbols));
      for (const double value : values_of(results[i])) EXPECT_FALSE(std::isnan(value));
    }
  }
}

// A program's symbols never begin with the mark, so that none of them is a variable.
TEST_P(Records, VariablesAreMarked) {
  for (const Sample& sample : samples()) {
    if (!op().lower) return;
    const SampleGraph made = make_sample_graph(op(), sample);
    const loops::Kernel kernel = op().lower(*made.node);
    const auto expect_marked = [](const std::string& name) {
      EXPECT_EQ(name.front(), kVariableMark) << name;
    };
    for (const loops::Loop& loop : kernel.parallel) expect_marked(loop.variable);
    for (const loops::Stage& stage : kernel.stages) {
      for (const auto* loops : {&stage.loops, &stage.reduce})
        for (const loops::Loop& loop : *loops) expect_marked(loop.variable);
      for (const loops::Binding& binding : stage.bindings) expect_marked(binding.symbol);
    }
    for (const std::string& name : loops::free_symbols(kernel)) EXPECT_TRUE(is_symbol_name(name)) << name;
  }
}

TEST_P(Records, SamplesSurviveTheText) {
  for (const Sample& sample : samples()) {
    const SampleGraph made = make_sample_graph(op(), sample);
    const std::string text = to_string(made.graph);
    EXPECT_EQ(to_string(parse_graph(text, ops::find_op)), text);
  }
}

// Whether the record takes a sample in a dtype at all.
bool takes(const Op& op, const Sample& sample, DType dtype) {
  try {
    make_sample_graph(op, sample, dtype);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

// In the other floating dtypes the results of a sample are close to those in f64.
TEST_P(Records, NarrowDtypesAreClose) {
  for (const Sample& sample : samples()) {
    if (!floats(sample) || !takes(op(), sample, DType::kF64)) continue;
    const std::vector<Tensor> exact = evaluate_sample(make_sample_graph(op(), sample, DType::kF64));
    for (const auto& [dtype, tolerance] :
         {std::pair{DType::kF32, 1e-4}, {DType::kF16, 3e-2}, {DType::kBF16, 2e-1}}) {
      if (!takes(op(), sample, dtype)) continue;
      const std::vector<Tensor> results = evaluate_sample(make_sample_graph(op(), sample, dtype));
      for (size_t i = 0; i < results.size(); ++i) {
        if (!is_floating(exact[i].dtype)) continue;  // a rounded operand may change a choice
        const std::vector<double> expected = values_of(exact[i]), values = values_of(results[i]);
        double far = 0;
        for (size_t k = 0; k < values.size(); ++k)
          far += std::abs(values[k] - expected[k]) > tolerance * (1 + std::abs(expected[k]));
        EXPECT_LE(far, 0.1 * static_cast<double>(values.size())) << name(dtype);
      }
    }
  }
}

// A value of the same kind that is another one.
AttributeValue other_value(const AttributeValue& value) {
  struct Change {
    AttributeValue operator()(bool flag) const { return !flag; }
    AttributeValue operator()(int64_t number) const { return number + 1; }
    AttributeValue operator()(double number) const { return std::isfinite(number) ? number + 0.25 : 2.0; }
    AttributeValue operator()(const std::string& text) const { return text + "x"; }
    AttributeValue operator()(DType dtype) const { return dtype == DType::kF32 ? DType::kF64 : DType::kF32; }
    AttributeValue operator()(const Dim& dim) const { return dim + Dim(1); }
    AttributeValue operator()(std::vector<int64_t> numbers) const {
      numbers.push_back(3);
      return numbers;
    }
    AttributeValue operator()(std::vector<double> numbers) const {
      numbers.push_back(3);
      return numbers;
    }
    AttributeValue operator()(std::vector<Dim> dims) const {
      dims.emplace_back(3);
      return dims;
    }
    AttributeValue operator()(Layout layout) const {
      layout.axes.push_back({.dim = 1});
      return layout;
    }
  };
  return std::visit(Change{}, value);
}

// The text for keys: a change of any attribute changes it.
TEST_P(Records, CanonicalTextTellsEveryAttribute) {
  for (const Sample& sample : samples()) {
    const SampleGraph made = make_sample_graph(op(), sample);
    const std::string before = to_string(made.graph, {.canonical = true});
    for (AttributeValue& value : made.node->values) {
      const AttributeValue old = std::exchange(value, other_value(value));
      EXPECT_NE(to_string(made.graph, {.canonical = true}), before) << to_string(old);
      value = old;
    }
    EXPECT_EQ(to_string(made.graph, {.canonical = true}), before);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Records, ::testing::ValuesIn(ops::all_ops().begin(), ops::all_ops().end()),
                         record_name);

}  // namespace
}  // namespace ingot::core::test
