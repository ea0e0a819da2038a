// SPDX-License-Identifier: Apache-2.0
// Ownership, order and names; graph_add.cpp and graph_edit.cpp have the rest of Graph.
#include "ir/graph.h"

#include <fmt/core.h>

#include <map>

#include "ir/graph_index.h"

namespace ingot::core {

std::string SourceLine::to_string() const {
  if (file.empty()) return module_path;
  std::string text = line > 0 ? fmt::format("{}:{}", file, line) : file;
  return function.empty() ? text : fmt::format("{} in {}", text, function);
}

Graph::Graph(std::string graph_name) : name(std::move(graph_name)), index_(std::make_unique<GraphIndex>()) {}
Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;

Value* Graph::insert_input(size_t position, std::string input_name, TensorType type) {
  auto& value = input_values_.emplace_back(std::make_unique<Value>());
  value->name = unique_name(input_name);
  value->type = std::move(type);
  inputs_.insert(inputs_.begin() + static_cast<ptrdiff_t>(position), value.get());
  for (size_t i = position; i < inputs_.size(); ++i) inputs_[i]->index = i;
  ++revision_;
  return value.get();
}

Node* Graph::insert(std::unique_ptr<Node> node, std::vector<TensorType> types) {
  Node* added = node.get();
  const auto place = insertion_point_ == nullptr ? nodes_.end() : index_->nodes.at(insertion_point_).position;
  GraphIndex::Entry& entry = index_->nodes[added];
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
  const auto [entry, is_new] = index_->names.try_emplace(base);
  if (is_new) return base;
  while (true) {
    std::string candidate = fmt::format("{}_{}", base, ++index_->names.at(base).last_suffix);
    if (index_->names.try_emplace(candidate).second) return candidate;
  }
}

Graph Graph::clone() const {
  Graph copy(name);
  copy.symbols = symbols;
  copy.current_source = current_source;
  copy.current_name = current_name;
  copy.current_side = current_side;
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
  for (const auto& [taken, info] : index_->names) copy.index_->names[taken].is_kept = true;
  return copy;
}

}  // namespace ingot::core
