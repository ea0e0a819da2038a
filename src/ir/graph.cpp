// SPDX-License-Identifier: Apache-2.0
// Ownership and adding nodes; graph_edit.cpp has the rest of Graph.
#include "ir/graph.h"

#include <fmt/core.h>

#include <map>

#include "ir/constant.h"
#include "ir/graph_index.h"
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

std::string SourceLine::to_string() const {
  if (file.empty()) return module_path;
  std::string text = line > 0 ? fmt::format("{}:{}", file, line) : file;
  return function.empty() ? text : fmt::format("{} in {}", text, function);
}

Graph::Graph(std::string graph_name) : name(std::move(graph_name)), index_(std::make_unique<Index>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Value* Graph::add_input(std::string input_name, TensorType type) {
  auto& value = input_values_.emplace_back(std::make_unique<Value>());
  value->name = unique_name(input_name);
  value->type = std::move(type);
  value->index = inputs_.size();
  inputs_.push_back(value.get());
  ++revision_;
  return value.get();
}

Node* Graph::add(const Op& op, std::vector<Value*> operands, AttributeValues values) {
  auto node = make_node(op, std::move(operands), std::move(values));
  node->source = current_source;
  node->name = current_name;
  check(*node, {});
  std::vector<TensorType> types = infer_types(*node);
  return insert(std::move(node), std::move(types));
}

Value* Graph::add_constant(Tensor tensor) {
  auto node = make_node(ops::constant, {}, {});
  node->source = current_source;
  node->name = current_name;
  node->literal = std::make_shared<const Tensor>(std::move(tensor));
  std::vector<TensorType> types = infer_types(*node);
  return insert(std::move(node), std::move(types))->results[0];
}

Node* Graph::add_with_graphs(const Op& op, std::vector<Value*> operands, AttributeValues values,
                             std::vector<Graph> graphs, std::vector<TensorType> results) {
  auto node = make_node(op, std::move(operands), std::move(values));
  node->source = current_source;
  node->name = current_name;
  for (Graph& graph : graphs) node->graphs.push_back(std::make_unique<Graph>(std::move(graph)));
  check(*node, results);
  return insert(std::move(node), std::move(results));
}

Node* Graph::add_copy(const Node& node, std::vector<Value*> operands) {
  auto copy = make_node(*node.op, std::move(operands), node.values);
  copy->source = node.source;
  copy->name = node.name;
  copy->literal = node.literal;
  for (const auto& graph : node.graphs) copy->graphs.push_back(std::make_unique<Graph>(graph->clone()));
  std::vector<TensorType> types;
  for (const Value* result : node.results) types.push_back(result->type);
  Node* added = insert(std::move(copy), std::move(types));
  for (size_t i = 0; i < added->results.size(); ++i) rename(added->results[i], node.results[i]->name);
  return added;
}

Node* Graph::insert(std::unique_ptr<Node> node, std::vector<TensorType> types) {
  Node* added = node.get();
  const auto place = insertion_point_ == nullptr ? nodes_.end() : index_->nodes.at(insertion_point_).position;
  Index::Entry& entry = index_->nodes[added];
  entry.position = nodes_.insert(place, std::move(node));
  const std::string base(added->name.empty() ? added->op->name : added->name);
  for (size_t i = 0; i < types.size(); ++i) {
    auto& value = entry.results.emplace_back(std::make_unique<Value>());
    value->name = unique_name(base);
    value->type = std::move(types[i]);
    value->producer = added;
    value->index = i;
    added->results.push_back(value.get());
  }
  for (Value* operand : added->operands) {
    if (operand != nullptr) operand->users.push_back(added);
  }
  ++revision_;
  return added;
}

std::string Graph::unique_name(const std::string& wanted) {
  const std::string base = wanted.empty() ? "value" : wanted;
  const auto [entry, is_new] = index_->names.try_emplace(base, 0);
  if (is_new) return base;
  while (true) {
    std::string candidate = fmt::format("{}_{}", base, ++index_->names.at(base));
    if (index_->names.try_emplace(candidate, 0).second) return candidate;
  }
}

Graph Graph::clone() const {
  Graph copy(name);
  copy.symbols = symbols;
  copy.current_source = current_source;
  copy.current_name = current_name;
  std::map<const Value*, Value*> copies = {{nullptr, nullptr}};
  for (const Value* input : inputs_) copies.emplace(input, copy.add_input(input->name, input->type));
  for (const auto& node : nodes_) {
    std::vector<Value*> operands;
    for (const Value* operand : node->operands) operands.push_back(copies.at(operand));
    const Node* added = copy.add_copy(*node, std::move(operands));
    for (size_t i = 0; i < added->results.size(); ++i) copies.emplace(node->results[i], added->results[i]);
  }
  for (const Value* output : outputs) copy.outputs.push_back(copies.at(output));
  for (const Update& update : updates)
    copy.updates.push_back({copies.at(update.target), copies.at(update.value)});
  copy.revision_ = revision_;
  return copy;
}

}  // namespace ingot::core
