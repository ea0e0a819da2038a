// SPDX-License-Identifier: Apache-2.0
// Editing a graph in place.
#include <algorithm>
#include <unordered_set>

#include "ir/graph.h"
#include "ir/graph_index.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void remove_one_use(Value* value, const Node* node) {
  if (value == nullptr) return;
  const auto use = std::ranges::find(value->users, node);
  invariant(use != value->users.end(), "the users of a value are incomplete");
  value->users.erase(use);
}

bool has_side_effect(const Node& node) {
  if (node.op->traits.has(Trait::kSideEffect)) return true;
  return std::ranges::any_of(node.graphs, [](const auto& graph) {
    return std::ranges::any_of(graph->nodes(), [](const auto& inner) { return has_side_effect(*inner); });
  });
}

bool is_target(const Graph& graph, const Value* value) {
  return std::ranges::any_of(graph.updates, [&](const Update& update) { return update.target == value; });
}

}  // namespace

Graph::InsertBefore::InsertBefore(Graph& graph, Node* node)
    : graph_(graph),
      previous_(graph.insertion_point_),
      previous_source_(std::move(graph.current_source)),
      previous_name_(std::move(graph.current_name)),
      previous_side_(graph.current_side) {
  graph_.insertion_point_ = node;
  graph_.current_source = node->source;
  graph_.current_name = node->name;
  graph_.current_side = node->side;
}

Graph::InsertBefore::~InsertBefore() {
  graph_.insertion_point_ = previous_;
  graph_.current_source = std::move(previous_source_);
  graph_.current_name = std::move(previous_name_);
  graph_.current_side = previous_side_;
}

void Graph::set_operand(Node* node, size_t index, Value* value) {
  Value*& operand = node->operands[index];
  if (operand == value) return;
  remove_one_use(operand, node);
  operand = value;
  if (value != nullptr) value->users.push_back(node);
  ++revision_;
}

void Graph::replace_uses(Value* from, Value* to) {
  if (from == to) return;
  const std::vector<Node*> users = std::move(from->users);
  from->users.clear();
  for (Node* user : users) {  // a node that uses the value twice is listed twice: one operand each time
    *std::ranges::find(user->operands, from) = to;
    to->users.push_back(user);
  }
  std::ranges::replace(outputs, from, to);
  for (Update& update : updates) {
    if (update.target == from) update.target = to;
    if (update.value == from) update.value = to;
  }
  ++revision_;
}

void Graph::erase(Node* node) {
  for (const Value* result : node->results) {
    const bool used = !result->users.empty() || is_output(result) || is_target(*this, result);
    invariant(!used, "the results of an erased node are still used");
    index_->free(result->name);
  }
  for (Value* operand : node->operands) remove_one_use(operand, node);
  const auto entry = index_->nodes.find(node);
  if (node == insertion_point_) {
    const auto next = std::next(entry->second.position);
    insertion_point_ = next == nodes_.end() ? nullptr : next->get();
  }
  nodes_.erase(entry->second.position);
  index_->nodes.erase(entry);
  ++revision_;
}

void Graph::erase_dead_nodes() {
  std::unordered_set<const Node*> live;
  std::vector<const Node*> pending;
  const auto reach = [&](const Node* node) {
    if (node != nullptr && live.insert(node).second) pending.push_back(node);
  };
  for (const Value* output : outputs) reach(output->producer);
  for (const Update& update : updates) {
    reach(update.target->producer);
    reach(update.value->producer);
  }
  for (const auto& node : nodes_) {
    if (has_side_effect(*node)) reach(node.get());
  }
  while (!pending.empty()) {
    const Node* node = pending.back();
    pending.pop_back();
    for (const Value* operand : node->operands) {
      if (operand != nullptr) reach(operand->producer);
    }
  }
  std::vector<Node*> order = node_list();
  std::ranges::reverse(order);  // users before producers
  for (Node* node : order) {
    if (!live.contains(node)) {
      erase(node);
    } else {
      for (const auto& graph : node->graphs) graph->erase_dead_nodes();
    }
  }
}

void Graph::remove_unused_inputs() {
  const auto unused = [&](const Value* input) {
    return input->users.empty() && !is_output(input) && !is_target(*this, input);
  };
  const size_t before = inputs_.size();
  for (const Value* input : inputs_) {
    if (unused(input)) index_->free(input->name);
  }
  std::erase_if(inputs_, unused);
  std::erase_if(input_values_, [&](const auto& value) { return unused(value.get()); });
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->index = i;
  if (inputs_.size() != before) ++revision_;
}

void Graph::rename(Value* value, std::string wanted) {
  if (value->name == wanted) return;
  index_->free(value->name);
  value->name = unique_name(wanted);
  ++revision_;
}

bool Graph::is_output(const Value* value) const {
  return std::ranges::find(outputs, value) != outputs.end() ||
         std::ranges::any_of(updates, [&](const Update& update) { return update.value == value; });
}

std::vector<Node*> Graph::node_list() const {
  std::vector<Node*> list;
  list.reserve(nodes_.size());
  for (const auto& node : nodes_) list.push_back(node.get());
  return list;
}

}  // namespace ingot::core
