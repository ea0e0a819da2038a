// SPDX-License-Identifier: Apache-2.0
#include "evaluate/evaluate.h"

#include <fmt/format.h>

#include <cstring>

#include "loops/interpreter.h"
#include "loops/kernel.h"
#include "ops/routine_attributes.h"
#include "routines/routine_table.h"
#include "support/error.h"

namespace ingot::core {
namespace {

using Operands = std::span<const Tensor* const>;

Tensor make_result(const TensorType& type, const SymbolValues& symbols) {
  std::vector<int64_t> shape;
  for (const Dim& dim : type.shape) shape.push_back(evaluate(dim, symbols));
  return make_tensor(type.dtype, std::move(shape));
}

std::vector<Tensor> make_results(const Node& node, const SymbolValues& symbols) {
  std::vector<Tensor> results;
  for (const Value* result : node.results) results.push_back(make_result(result->type, symbols));
  return results;
}

std::vector<TensorView> views(Operands operands) {
  std::vector<TensorView> all;
  for (const Tensor* operand : operands) {
    if (operand != nullptr) all.push_back(operand->view());
  }
  return all;
}

// Values are always row-major here: layouts do not affect results.
std::vector<Tensor> run_kernel(const Node& node, Operands operands, const SymbolValues& symbols) {
  loops::Kernel kernel = node.op->lower(node);
  for (loops::Buffer& buffer : kernel.buffers) buffer.type.layout = {};
  loops::verify(kernel);
  std::vector<Tensor> results = make_results(node, symbols);
  if (node.op->traits.has(Trait::kInPlace)) {
    std::memcpy(results[0].data.get(), operands[0]->data.get(), results[0].bytes());
  }
  std::vector<TensorView> buffers = views(operands);
  for (const Tensor& result : results) buffers.push_back(result.view());
  if (loops::interpret(kernel, buffers, symbols) != loops::KernelStatus::kOk)
    throw UserError("INGOT-U414", fmt::format("{}: an index is out of range", node.op->name));
  return results;
}

std::vector<Tensor> run_routine(const Node& node, Operands operands, const SymbolValues& symbols) {
  const Routine* routine = find_routine(node.op->routine);
  invariant(routine != nullptr, fmt::format("{} has no routine {}", node.op->name, node.op->routine));
  std::vector<Tensor> results = make_results(node, symbols);
  const std::vector<TensorView> inputs = views(operands);
  std::vector<TensorView> outputs;
  for (const Tensor& result : results) outputs.push_back(result.view());
  const NamedValues attributes = routine_attributes(node);
  routine->run({.inputs = inputs, .outputs = outputs, .attributes = attributes});
  return results;
}

std::vector<Tensor> run_decomposition(const Node& node, Operands operands, const SymbolValues& symbols) {
  Graph graph("decomposition");
  Node inner;
  inner.op = node.op;
  inner.values = node.values;
  inner.results = node.results;
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] != nullptr) inputs.push_back(*operands[i]);
    inner.operands.push_back(operands[i] ? graph.add_input(fmt::format("operand{}", i), node.operand_type(i))
                                         : nullptr);
  }
  graph.outputs = node.op->decompose(graph, inner);
  return evaluate_with(graph, inputs, {}, symbols).outputs;
}

std::vector<Tensor> run_region(const Node& node, Operands operands, const SymbolValues& symbols) {
  std::vector<Tensor> inputs;
  for (const Tensor* operand : operands) inputs.push_back(*operand);
  return evaluate_with(*node.graphs[0], inputs, {}, symbols).outputs;
}

}  // namespace

std::vector<Tensor> evaluate_node(const Node& node, Operands operands, const SymbolValues& symbols) {
  if (node.literal) return {*node.literal};
  if (node.op->traits.has(Trait::kFused)) return run_region(node, operands, symbols);
  if (node.op->lower) return run_kernel(node, operands, symbols);
  if (node.op->decompose) return run_decomposition(node, operands, symbols);
  if (!node.op->routine.empty()) return run_routine(node, operands, symbols);
  throw UnsupportedError("INGOT-N401", fmt::format("{} cannot be evaluated", node.op->name));
}

}  // namespace ingot::core
