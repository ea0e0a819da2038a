// SPDX-License-Identifier: Apache-2.0
// Checked nodes with inferred types.
#include <algorithm>

#include <fmt/core.h>

#include "ir/constant.h"
#include "ir/graph.h"
#include "ir/node_rules.h"
#include "support/error.h"

namespace ingot::core {
namespace {

// Runs `function`; adds the node's name and source line to its errors.
template <typename Kind, typename Function>
auto blaming(const Node& node, Function&& function) {
  try {
    return function();
  } catch (const Kind& error) {
    ErrorDetails details = error.details();
    if (details.node.empty()) details.node = node.name;
    if (details.source_line.empty()) details.source_line = node.source.to_string();
    throw Kind(std::move(details));
  }
}

void check(const Node& node, std::span<const TensorType> results) {
  std::string problem = operand_problem(*node.op, node.operands);
  if (problem.empty()) problem = attribute_problem(*node.op, node.values);
  if (problem.empty()) problem = nested_graph_problem(node, results);
  if (problem.empty()) return;
  throw UserError({.code = "INGOT-U112",
                   .message = std::move(problem),
                   .node = node.name,
                   .source_line = node.source.to_string(),
                   .advice = {}});
}

std::unique_ptr<Node> make_node(const Op& op, std::vector<Value*> operands, AttributeValues values) {
  auto node = std::make_unique<Node>();
  node->op = &op;
  node->operands = std::move(operands);
  node->values = values.empty() ? op.attributes.defaults() : std::move(values);
  while (node->operands.size() < op.operands.size() && op.operands[node->operands.size()].optional) {
    node->operands.push_back(nullptr);
  }
  return node;
}

// Operators infer types from attributes that anybody may have written. Unused complex constants are allowed.
void require_real_types(const Node& node, const std::vector<TensorType>& types) {
  const auto is_negative = [](const Dim& dim) { return dim.constant().value_or(0) < 0; };
  for (const TensorType& type : types) {
    const bool is_real = node.literal != nullptr || !is_complex(type.dtype);
    if (is_real && std::ranges::none_of(type.shape, is_negative)) continue;
    throw UserError("INGOT-U112",
                    fmt::format("the result of {} would be {}", node.op->name, to_string(type)));
  }
}

std::vector<TensorType> infer_types(const Node& node) {
  invariant(node.op->infer != nullptr,
            fmt::format("the result types of {} must be specified", node.op->name));
  const auto infer = [&] {
    std::vector<TensorType> types = node.op->infer(node);
    require_real_types(node, types);
    return types;
  };
  return blaming<UnsupportedError>(node, [&] { return blaming<UserError>(node, infer); });
}

}  // namespace

std::unique_ptr<Node> Graph::start_node(const Op& op, std::vector<Value*> operands,
                                        AttributeValues values) const {
  auto node = make_node(op, std::move(operands), std::move(values));
  node->source = current_source;
  node->name = current_name;
  node->side = current_side;
  return node;
}

Node* Graph::add(const Op& op, std::vector<Value*> operands, AttributeValues values) {
  auto node = start_node(op, std::move(operands), std::move(values));
  check(*node, {});
  std::vector<TensorType> types = infer_types(*node);
  return insert(std::move(node), std::move(types));
}

Value* Graph::add_constant(Tensor tensor) {
  auto node = start_node(ops::constant, {}, {});
  node->literal = std::make_shared<const Tensor>(std::move(tensor));
  std::vector<TensorType> types = infer_types(*node);
  return insert(std::move(node), std::move(types))->results[0];
}

Node* Graph::add_with_graphs(const Op& op, std::vector<Value*> operands, AttributeValues values,
                             std::vector<Graph> graphs, std::vector<TensorType> results) {
  auto node = start_node(op, std::move(operands), std::move(values));
  for (Graph& graph : graphs) node->graphs.push_back(std::make_unique<Graph>(std::move(graph)));
  check(*node, results);
  return insert(std::move(node), std::move(results));
}

Node* Graph::add_copy(const Node& node, std::vector<Value*> operands) {
  auto copy = make_node(*node.op, std::move(operands), node.values);
  copy->source = node.source;
  copy->name = node.name;
  copy->side = node.side;
  copy->literal = node.literal;
  for (const auto& graph : node.graphs) copy->graphs.push_back(std::make_unique<Graph>(graph->clone()));
  std::vector<TensorType> types;
  for (const Value* result : node.results) types.push_back(result->type);
  Node* added = insert(std::move(copy), std::move(types));
  for (size_t i = 0; i < added->results.size(); ++i) rename(added->results[i], node.results[i]->name);
  return added;
}

}  // namespace ingot::core
