// SPDX-License-Identifier: Apache-2.0
#include "ir/control_flow.h"

#include <algorithm>

#include <fmt/core.h>

namespace ingot::core {
namespace {

TensorType scalar_of(DType dtype) { return {dtype, {}, {}}; }

bool are_inputs_of(const Graph& graph, const std::vector<Value*>& operands) {
  return std::ranges::equal(graph.inputs(), operands, [](const Value* input, const Value* operand) {
    return input->type == (operand == nullptr ? scalar_of(DType::kI64) : operand->type);
  });
}

}  // namespace

bool is_loop(const Node& node) { return node.op->traits.has(Trait::kControlFlow) && node.graphs.size() == 1; }

size_t carried_count(const Node& loop) {
  const size_t outputs = loop.graphs[0]->outputs.size();
  return outputs == 0 ? 0 : outputs - 1;
}

std::vector<Value*> graph_operands(const Node& node) {
  std::vector<Value*> operands(node.operands.begin() + 1, node.operands.end());
  if (is_loop(node)) operands.insert(operands.begin(), nullptr);
  return operands;
}

std::vector<TensorType> types_of(std::span<Value* const> values) {
  std::vector<TensorType> types;
  for (const Value* value : values) types.push_back(value->type);
  return types;
}

std::string control_flow_problem(const Node& node, std::span<const TensorType> results) {
  const auto name = node.op->name;
  if (node.graphs.empty() || node.graphs.size() > 2)
    return fmt::format("{} must have one or two graphs", name);
  if (node.operands.empty() || node.operands[0] == nullptr ||
      node.operands[0]->type != scalar_of(DType::kBool))
    return fmt::format("the condition of {} must be a single bool", name);
  std::vector<TensorType> expected(results.begin(), results.end());
  if (is_loop(node)) expected.insert(expected.begin(), scalar_of(DType::kBool));
  const std::vector<Value*> operands = graph_operands(node);
  if (is_loop(node) && operands.size() < expected.size())
    return fmt::format("{} carries more values than it has operands", name);
  for (size_t i = 1; is_loop(node) && i < expected.size(); ++i) {
    if (operands[i]->type != expected[i])
      return fmt::format("{} carries a value of type {} as {}", name, to_string(operands[i]->type),
                         to_string(expected[i]));
  }
  const auto same_type = [](const Value* output, const TensorType& type) { return output->type == type; };
  for (const auto& graph : node.graphs) {
    if (!are_inputs_of(*graph, operands))
      return fmt::format("the operands of {} differ from the inputs of its graph", name);
    if (!std::ranges::equal(graph->outputs, expected, same_type))
      return fmt::format("the results of {} differ in type from the outputs of its graph", name);
    if (!graph->updates.empty()) return fmt::format("a graph of {} updates state", name);
  }
  return "";
}

}  // namespace ingot::core
