// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/sample_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "compiler/accuracy.h"
#include "evaluate/evaluate.h"
#include "ops/ops.h"
#include "ops/view.h"
#include "support/error.h"

namespace ingot::core::test {
namespace {

SymbolValues bind_symbols(const Graph& graph) {
  SymbolValues values;
  int64_t next = 3;
  for (const auto& [symbol, info] : graph.symbols) values.emplace(symbol, next++);
  return values;
}

void declare_symbols(Graph& graph, std::span<const Dim> dims) {
  for (const Dim& dim : dims) {
    for (const std::string& symbol : dim.symbols()) graph.symbols[symbol].range = {1, 64};
  }
}

void declare_symbols(Graph& graph, std::span<const AttributeValue> attributes) {
  for (const AttributeValue& value : attributes) {
    if (const auto* dim = std::get_if<Dim>(&value)) declare_symbols(graph, std::span(dim, 1));
    if (const auto* dims = std::get_if<std::vector<Dim>>(&value)) declare_symbols(graph, *dims);
  }
}

void step_index(std::vector<int64_t>& index, std::span<const int64_t> shape) {
  for (size_t i = shape.size(); i-- > 0;) {
    if (++index[i] < shape[i]) return;
    index[i] = 0;
  }
}

Tensor random_tensor(const SampleOperand& operand, const TensorType& type, const SymbolValues& symbols,
                     std::mt19937& random) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, symbols));
  Tensor tensor = make_tensor(type.dtype, shape);
  std::vector<int64_t> index(shape.size(), 0);
  std::uniform_real_distribution<double> reals(operand.low, operand.high);
  std::uniform_int_distribution<int64_t> integers(static_cast<int64_t>(operand.low),
                                                  static_cast<int64_t>(operand.high));
  for (int64_t i = 0; i < tensor.elements(); ++i, step_index(index, shape)) {
    if (is_floating(type.dtype))
      write_double(tensor.view(), index, reals(random));
    else
      write_integer(tensor.view(), index, integers(random));
  }
  return tensor;
}

bool is_packed(const Value* value) { return !value->type.layout.is_row_major(); }

bool has_sizes_of_inputs(const Graph& graph) {
  return std::ranges::all_of(graph.symbols, [&](const auto& symbol) {
    return std::ranges::any_of(graph.inputs(), [&](const Value* input) {
      return std::ranges::count(input->type.shape, Dim::symbol(symbol.first)) > 0;
    });
  });
}

}  // namespace

SampleGraph make_sample_node(const Op& op, const Sample& sample, DType dtype) {
  SampleGraph result{.graph = Graph("sample"), .node = nullptr, .symbols = {}, .operands = {}};
  const AttributeValues attributes = sample.attributes.empty() ? op.attributes.defaults() : sample.attributes;
  declare_symbols(result.graph, attributes);
  for (const SampleOperand& operand : sample.operands) declare_symbols(result.graph, operand.type.shape);
  result.symbols = bind_symbols(result.graph);
  std::vector<Value*> operands;
  for (const SampleOperand& operand : sample.operands) {
    TensorType type = operand.type;
    if (type.dtype == DType::kF32) type.dtype = dtype;
    operands.push_back(result.graph.add_input("x", type));
  }
  result.node = result.graph.add(op, operands, attributes);
  result.graph.outputs = result.node->results;
  return result;
}

SampleGraph make_sample_graph(const Op& op, const Sample& sample, DType dtype) {
  SampleGraph result = make_sample_node(op, sample, dtype);
  std::mt19937 random(17);
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const TensorType& type = result.graph.inputs()[i]->type;
    result.operands.push_back(random_tensor(sample.operands[i], type, result.symbols, random));
  }
  return result;
}

std::optional<SampleGraph> callable_sample(const Op& op, const Sample& sample, DType dtype) {
  try {
    SampleGraph made = make_sample_graph(op, sample, dtype);
    if (std::ranges::any_of(made.graph.inputs(), is_packed) || !has_sizes_of_inputs(made.graph))
      return std::nullopt;
    for (Value*& output : made.graph.outputs) {
      if (is_packed(output)) output = made.graph.call(ops::relayout, {output}, ops::Relayout{});
    }
    return made;
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::vector<Tensor> evaluate_sample(const SampleGraph& sample) {
  std::vector<const Tensor*> operands;
  for (size_t i = 0; i < sample.node->operands.size(); ++i)
    operands.push_back(i < sample.operands.size() ? &sample.operands[i] : nullptr);
  return evaluate_node(*sample.node, operands, sample.symbols);
}

std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t i = 0; i < tensor.elements(); ++i, step_index(index, tensor.shape)) {
    values.push_back(read_double(tensor.view(), index));
  }
  return values;
}

void expect_near(const Tensor& expected, const Tensor& got) {
  ASSERT_EQ(expected.shape, got.shape);
  const std::vector<double> wanted = values_of(expected), values = values_of(got);
  double squares = 0;
  for (const double value : wanted) squares += std::isfinite(value) ? value * value : 0;
  const double rms = std::sqrt(squares / static_cast<double>(std::max<size_t>(wanted.size(), 1)));
  for (size_t i = 0; i < wanted.size(); ++i)
    ASSERT_TRUE(agree(wanted[i], values[i], allowed_difference(expected.dtype, wanted[i], rms)))
        << "element " << i << ": " << values[i] << ", not " << wanted[i];
}

std::vector<const Op*> ops_with_samples() {
  std::vector<const Op*> found;
  std::ranges::copy_if(ops::all_ops(), std::back_inserter(found),
                       [](const Op* op) { return op->samples != nullptr; });
  return found;
}

std::vector<const Op*> lowered_ops() {
  std::vector<const Op*> result = ops_with_samples();
  std::erase_if(result, [](const Op* op) { return op->lower == nullptr; });
  return result;
}

std::vector<SizedKernel> at_other_sizes(const Op& op) {
  std::vector<SizedKernel> result;
  for (const Sample& sample : op.samples()) {
    const SampleGraph made = make_sample_graph(op, sample);
    if (made.symbols.empty()) continue;
    loops::Kernel kernel = op.lower(*made.node);
    for (const auto& [name, info] : made.graph.symbols) kernel.symbols[name].range = {0, INT64_MAX};
    for (const int64_t size : {0, 1, 37}) {
      SymbolValues symbols = made.symbols;
      for (auto& [name, value] : symbols) value = size;
      result.push_back({kernel, std::move(symbols)});
    }
  }
  return result;
}

}  // namespace ingot::core::test
