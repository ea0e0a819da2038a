// SPDX-License-Identifier: Apache-2.0
// Every ordered pair of elementwise functions, and of a reduction and an elementwise function, fused into one
// kernel, on special values: the pair has to compute what the two compute one after the other, to the bit if
// neither sums. Each alone is compared with the interpreter.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include <fmt/core.h>

#include "loops/interpreter.h"
#include "ops/ops.h"
#include "ops/region.h"
#include "support/error.h"
#include "tests/backends/cpu/compile/merge_kernels.h"
#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/backends/cpu/compile/special_values.h"
#include "tests/support/long_mode.h"

namespace ingot::core::cpu {
namespace {

constexpr size_t kPairsOfKernel = 24;  // pairs of one kernel
constexpr int64_t kColumns = 16;       // of rows that are reduced

// An operator as its record's samples call it, for operands of one shape.
struct Function {
  const Op* op;
  AttributeValues attributes;
  std::vector<DType> operands;
  DType result;

  std::string text() const {
    std::string text(op->name);
    for (const DType dtype : operands) text += fmt::format(" {}", name(dtype));
    for (const AttributeValue& value : attributes) text += " " + to_string(value);
    return text;
  }
};

std::vector<Value*> add_inputs(Graph& graph, const std::vector<DType>& dtypes, const Shape& shape) {
  std::vector<Value*> inputs;
  for (const DType dtype : dtypes) inputs.push_back(graph.add_input("x", {dtype, shape, {}}));
  return inputs;
}

// The functions with `trait` of operands of `dtype` where their samples have f32.
std::vector<Function> functions_with(Trait trait, DType dtype, const Shape& shape) {
  std::vector<Function> functions;
  for (const Op* op : ops::all_ops()) {
    const bool chosen = op->traits.has(trait) && !op->traits.has(Trait::kContraction);
    if (!chosen || op->lower == nullptr || op->samples == nullptr) continue;
    std::vector<std::string> known;
    for (const Sample& sample : op->samples()) {
      Function function{op, sample.attributes, {}, DType::kF32};
      if (function.attributes.empty()) function.attributes = op->attributes.defaults();
      for (const SampleOperand& operand : sample.operands)
        function.operands.push_back(operand.type.dtype == DType::kF32 ? dtype : operand.type.dtype);
      const std::string text = function.text();
      if (std::ranges::find(known, text) != known.end()) continue;
      known.push_back(text);
      try {
        Graph graph;
        const Node* node = graph.add(*op, add_inputs(graph, function.operands, shape), function.attributes);
        function.result = node->results[0]->type.dtype;
        const bool is_static = loops::free_symbols(op->lower(*node)).empty();
        if (node->results.size() == 1 && is_static) functions.push_back(std::move(function));
      } catch (const UserError&) {  // other dtypes or ranks
      }
    }
  }
  return functions;
}

// A composed kernel with its buffers' values.
struct Composed {
  std::string text;
  loops::Kernel kernel;
  std::vector<Tensor> buffers;
  size_t result;  // among them
};

Tensor make_result(const Value& value) {
  std::vector<int64_t> shape;
  for (const Dim& dim : value.type.shape) shape.push_back(*dim.constant());
  return make_tensor(value.type.dtype, shape);
}

// `operands` by the graph's inputs.
Composed compose(std::string text, const Graph& graph, const std::vector<Tensor>& operands) {
  std::vector<const Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  const Value* output = nodes.back()->results[0];
  const RegionKernel region = compose_region(nodes, std::span(&output, 1));
  Composed composed{std::move(text), region.kernel, {}, 0};
  for (const Value* value : region.buffers) {
    if (value == output) composed.result = composed.buffers.size();
    composed.buffers.push_back(value == output ? make_result(*value) : operands.at(value->index));
  }
  return composed;
}

Composed alone(const Function& function, const Shape& shape, const std::vector<Tensor>& operands) {
  Graph graph;
  graph.add(*function.op, add_inputs(graph, function.operands, shape), function.attributes);
  return compose(function.text(), graph, operands);
}

void run(std::span<const Composed> parts, CpuFeatures features) {
  std::vector<loops::Kernel> kernels;
  std::vector<Tensor> buffers;
  for (const Composed& part : parts) {
    kernels.push_back(part.kernel);
    buffers.insert(buffers.end(), part.buffers.begin(), part.buffers.end());
  }
  ASSERT_EQ(test::run_once(test::merge_kernels(kernels), features, buffers), 0);
}

// One function after the other, in one kernel.
struct Pair {
  Composed fused;
  Tensor expected;
  // Results of the second function for results of the first that differ by rounding errors; empty where the
  // first is exact.
  std::vector<Tensor> nearby;
};

// Floats changed by some units in the last place, as another order of a sum would.
Tensor nudged(const Tensor& tensor, double factor) {
  Tensor moved = to_dense(tensor.view());
  const TensorView flat{moved.data.get(), moved.dtype, {moved.elements()}, {1}};
  for (int64_t i = 0; is_floating(moved.dtype) && i < moved.elements(); ++i)
    write_double(flat, {&i, 1}, read_double(flat, {&i, 1}) * factor);
  return moved;
}

double element(const Tensor& tensor, int64_t i) {
  return read_double({tensor.data.get(), tensor.dtype, {tensor.elements()}, {1}}, {&i, 1});
}

// Whether each element is among those of the nearby results, or is NaN where one of them is.
bool lies_nearby(const Pair& pair, const Tensor& got, double relative) {
  for (int64_t i = 0; i < got.elements(); ++i) {
    const double value = element(got, i);
    double low = element(pair.expected, i), high = low;
    if (value == low) continue;  // infinities, too
    bool same_kind = std::isnan(value) && std::isnan(low);
    for (const Tensor& tensor : pair.nearby) {
      const double other = element(tensor, i);
      same_kind = same_kind || (std::isnan(value) && std::isnan(other));
      low = std::fmin(low, other);
      high = std::fmax(high, other);
    }
    const double slack = relative * std::max(1.0, std::fmax(std::fabs(low), std::fabs(high))) + (high - low);
    if (!same_kind && !(value >= low - slack && value <= high + slack)) return false;
  }
  return true;
}

bool have_equal_loops(const Pair& a, const Pair& b) {
  return std::ranges::equal(a.fused.kernel.parallel, b.fused.kernel.parallel, {}, &loops::Loop::extent,
                            &loops::Loop::extent);
}

class OperatorPairs : public ::testing::TestWithParam<CpuFeatures> {
 protected:
  // Special values of the shape; for reductions among small whole numbers, whose sums are exact.
  const Tensor& operand(DType dtype, size_t number, const Shape& shape) {
    std::vector<int64_t> sizes;
    for (const Dim& dim : shape) sizes.push_back(*dim.constant());
    auto& known = operands_[{dtype, sizes}];
    while (known.size() <= number) known.push_back(test::special_tensor(dtype, sizes, known.size()));
    return known[number];
  }
  std::vector<Tensor> operands_of(const Function& function, const Shape& shape, size_t from = 0) {
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < function.operands.size(); ++i)
      tensors.push_back(operand(function.operands[i], from + i, shape));
    return tensors;
  }

  // The result of one function, compiled by itself.
  Tensor result_of(const Function& function, const Shape& shape, const std::vector<Tensor>& operands) {
    const std::string key = function.text() + to_string(TensorType{DType::kF32, shape, {}});
    auto found = images_.find(key);
    const Composed composed = alone(function, shape, operands);
    if (found == images_.end())
      found = images_.emplace(key, std::make_unique<test::CompiledKernel>(composed.kernel, GetParam())).first;
    EXPECT_EQ(found->second->run(composed.buffers), 0);
    return composed.buffers[composed.result];
  }

  // The pairs whose second function takes the result of the first as any of its operands.
  void add_pairs(const Function& first, const Shape& shape, const Function& second) {
    std::optional<Tensor> between;
    for (size_t slot = 0; slot < second.operands.size(); ++slot) {
      if (second.operands[slot] != first.result) continue;
      std::vector<Tensor> inputs = operands_of(first, shape);
      if (!between) between = result_of(first, shape, inputs);
      Graph graph;
      Node* node = graph.add(*first.op, add_inputs(graph, first.operands, shape), first.attributes);
      const Shape middle = node->results[0]->type.shape;
      std::vector<Value*> values;
      std::vector<Tensor> rest = operands_of(second, middle, first.operands.size());
      for (size_t i = 0; i < second.operands.size(); ++i) {
        values.push_back(i == slot ? node->results[0]
                                   : graph.add_input("y", {second.operands[i], middle, {}}));
        if (i != slot) inputs.push_back(rest[i]);
      }
      try {
        graph.add(*second.op, values, second.attributes);
      } catch (const UserError&) {  // of another rank
        return;
      }
      std::vector<Tensor> nearby;
      for (const double factor : {1 - 0x1p-21, 1 + 0x1p-21}) {
        if (relative_ == 0 || !first.op->traits.has(Trait::kReduction)) break;
        rest[slot] = nudged(*between, factor);
        nearby.push_back(result_of(second, middle, rest));
      }
      rest[slot] = *between;
      Pair pair{
          compose(fmt::format("{} into operand {} of {}", first.text(), slot, second.text()), graph, inputs),
          result_of(second, middle, rest), std::move(nearby)};
      if (pairs_.size() == kPairsOfKernel || (!pairs_.empty() && !have_equal_loops(pairs_[0], pair))) check();
      pairs_.push_back(std::move(pair));
    }
  }

  // Runs and compares the pairs that were added.
  void check() {
    std::vector<Composed> parts;
    for (const Pair& pair : pairs_) parts.push_back(pair.fused);
    if (!parts.empty()) run(parts, GetParam());
    for (const Pair& pair : pairs_) {
      const Tensor& got = pair.fused.buffers[pair.fused.result];
      const std::string difference = test::first_difference(pair.expected, got, relative_);
      if (!difference.empty() && !pair.nearby.empty() && lies_nearby(pair, got, relative_)) continue;
      EXPECT_EQ(difference, "") << pair.fused.text << "\n" << to_string(pair.fused.kernel);
    }
    checked_ += pairs_.size();
    pairs_.clear();
  }

  std::map<std::pair<DType, std::vector<int64_t>>, std::vector<Tensor>> operands_;
  std::map<std::string, std::unique_ptr<test::CompiledKernel>> images_;
  std::vector<Pair> pairs_;
  size_t checked_ = 0;
  double relative_ = 0;  // tolerance
};

Shape vector_shape(DType dtype) { return {test::special_pairs(dtype)}; }
Shape rows_shape(DType dtype) { return {test::special_rows(dtype), kColumns}; }

std::vector<DType> dtypes() {
  if (!core::test::is_long_mode()) return {DType::kF32};
  return {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kU8, DType::kI8};
}

TEST_P(OperatorPairs, AreMadeOfFunctionsThatAreAsTheInterpreterSays) {
  for (const DType dtype : dtypes()) {
    for (const Trait trait : {Trait::kElementwise, Trait::kReduction}) {
      const Shape shape = trait == Trait::kReduction ? rows_shape(dtype) : vector_shape(dtype);
      for (const Function& function : functions_with(trait, dtype, shape)) {
        const std::vector<Tensor> operands = operands_of(function, shape);
        const Composed composed = alone(function, shape, operands);
        std::vector<TensorView> views;
        for (const Tensor& buffer : composed.buffers) views.push_back(buffer.view());
        ASSERT_EQ(interpret(composed.kernel, views, {}), loops::KernelStatus::kOk);
        const std::string difference =
            test::first_difference(composed.buffers[composed.result], result_of(function, shape, operands),
                                   dtype == DType::kF64 ? 1e-9 : 1e-5);
        EXPECT_EQ(difference, "") << function.text() << "\n" << to_string(composed.kernel);
      }
    }
  }
}

TEST_P(OperatorPairs, OfElementwiseFunctions) {
  for (const DType dtype : dtypes()) {
    const Shape shape = vector_shape(dtype);
    const std::vector<Function> functions = functions_with(Trait::kElementwise, dtype, shape);
    for (const Function& first : functions) {
      for (const Function& second : functions) add_pairs(first, shape, second);
    }
    check();
  }
  EXPECT_GT(checked_, 5000U);
  RecordProperty("pairs", static_cast<int>(checked_));
}

TEST_P(OperatorPairs, OfReductionsAndTheirNeighbours) {
  relative_ = 1e-5;  // the order of sums that are not exact depends on what is fused
  const Shape shape = rows_shape(DType::kF32);
  const std::vector<Function> functions = functions_with(Trait::kElementwise, DType::kF32, shape);
  const std::vector<Function> reductions = functions_with(Trait::kReduction, DType::kF32, shape);
  for (const Function& reduction : reductions) {
    for (const Function& function : functions) {
      add_pairs(reduction, shape, function);
      add_pairs(function, shape, reduction);
    }
  }
  check();
  EXPECT_GT(checked_, 1000U);
  RecordProperty("pairs", static_cast<int>(checked_));
}

INSTANTIATE_TEST_SUITE_P(Targets, OperatorPairs, ::testing::ValuesIn(test::targets()), [](const auto& info) {
  return info.param.has(CpuFeature::kX86V4) ? std::string("v4") : std::string("v3");
});

}  // namespace
}  // namespace ingot::core::cpu
