// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/sample_graph.h"

#include <random>

#include "evaluate/evaluate.h"
#include "ops/ops.h"

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

std::vector<const Op*> lowered_ops() {
  std::vector<const Op*> result;
  for (const Op* op : ops::all_ops()) {
    if (op->lower != nullptr && op->samples != nullptr) result.push_back(op);
  }
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
